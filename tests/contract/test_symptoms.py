"""The error messages that pages give as symptoms are those of the real packages."""

from __future__ import annotations

import ast
import importlib.util
import json.decoder
import re
from functools import cache
from pathlib import Path

import pytest

from dsguard.catalogue import rules, symptoms

PLACES = [
    ("deepspeed", "**/*.py"),
    ("accelerate", "**/*.py"),
    ("transformers", "*.py"),
    ("transformers", "integrations/deepspeed.py"),
]
"""Where messages are looked for; transformers' models hold none that matter here."""

OF_PYTHON = (
    "expected str, bytes or os.PathLike object, not NoneType",
    "got an unexpected keyword argument",
    "missing 1 required positional argument: 'total_num_steps'",
    "'list' object has no attribute 'get'",
    "not supported between instances of 'float' and 'str'",
    "not supported between instances of 'str' and 'float'",
    "No module named 'mpi4py'",
    "not enough values to unpack",
)
"""Messages of the interpreter."""

ELSEWHERE = (
    "Extra inputs are not permitted",
    "Input should be",
    "CUDA error: invalid device ordinal",
    "EADDRINUSE",
    "FORCE_TORCHRUN=1",
    "is not an Optimizer",
)
"""Messages of pydantic, torch and LLaMA-Factory."""


def messages() -> list[tuple[str, str]]:
    """The slug of the rule and the message, for each symptom that is a message of theirs."""
    return [
        (rule.meta.slug, symptom.strip("`"))
        for rule in rules()
        for symptom in symptoms(rule)
        if re.fullmatch("`[^`]+ [^`]+`", symptom)
        and not any(words in symptom for words in (*OF_PYTHON, *ELSEWHERE))
    ]


@cache
def sources() -> str:
    """All texts in the sources of the packages, with a mark where a value is put in."""
    paths = [Path(json.decoder.__file__)]
    for package, pattern in PLACES:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        paths += Path(spec.origin).parent.glob(pattern)
    texts: list[str] = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "\0" for p in node.values]
                texts.append("".join(str(part) for part in parts))
    return "\n".join(texts).replace("`", "")


@pytest.mark.deepspeed
@pytest.mark.parametrize(("slug", "message"), messages())
def test_the_message_exists(slug: str, message: str) -> None:
    pytest.importorskip("deepspeed")
    pytest.importorskip("accelerate")
    text = re.sub(r"^\w+(Error|Exception): ", "", message)
    pieces = [piece.strip() for piece in text.split("...") if len(piece.strip()) > 3]
    assert pieces
    for piece in pieces:
        assert piece.strip("(),'") in sources(), piece


def test_there_are_messages() -> None:
    assert len(messages()) > 40
