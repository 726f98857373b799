"""The search for dicts in what code that is not read gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsguard.script.loop.notes import Notes
from tests.conftest import Dsguard


def test_a_wide_dict_that_many_calls_get_is_not_searched_each_time(
    dsguard: Dsguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bool]] = []
    real = Notes.may_look

    def may_look(self: Notes, count: int) -> bool:
        asked.append((count, real(self, count)))
        return asked[-1][1]

    monkeypatch.setattr(Notes, "may_look", may_look)
    wide = ", ".join(f'"k{i}": {i}' for i in range(1000))
    text = (
        "import deepspeed\nfrom elsewhere import f\n" + f"wide = {{{wide}}}\n" + "f(wide)\n" * 300
    )
    (tmp_path / "train.py").write_text(text + "deepspeed.initialize(model=m, config=wide)\n")
    dsguard("check -o concise train.py", tmp_path)
    assert len(asked) == 300
    assert sum(count for count, looked in asked if looked) == 200_000
