"""The kinds of trouble are a contract with the rules: each of them can happen."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import dsguard.launch
from dsguard.launch.context import TroubleKind


def test_every_kind_of_trouble_is_raised_somewhere() -> None:
    folder = Path(dsguard.launch.__file__).parent
    texts = [p.read_text("utf-8") for p in folder.rglob("*.py") if p.name != "context.py"]
    for kind in get_args(TroubleKind):
        assert any(f'"{kind}"' in text for text in texts), kind
