"""What dsguard finds in the launch scripts is what bash runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsguard.launch.context import Word

from .fixtures import SCRIPTS, found_in
from .real_bash import PROGRAMS, agrees, commands_run, needs_bash

_NO_SHELL = (".mk", ".md")
_CALLED_WITH = {"python-path-unknown.sh": {"PY": "python"}}
"""What the caller of a script sets."""
_NEVER_RUN = {"positional-required.sh", "function-never-called.sh", "strict-mode.sh"}
"""Scripts that stop when they are called without arguments, or start nothing."""
_SOME_RUN = {"launch-in-each-branch.sh"}
"""Scripts with launches that this call does not reach."""
_SETTING = re.compile(r"[A-Z_]+=")
_PREFIXES = ("nohup", "env", "exec")


def words_run(words: tuple[Word, ...]) -> list[Word]:
    """The words that reach the launcher: settings and bash's own prefixes are not among them."""
    left = list(words)
    while left and (left[0].text in _PREFIXES or _SETTING.match(left[0].text)):
        left.pop(0)
    return [word for i, word in enumerate(left) if not (i and _is_setting(left, i))]


def _is_setting(words: list[Word], at: int) -> bool:
    """``NAME=value`` inside ``srun bash -c``, before the program."""
    if words[at - 1].text.startswith("-") or not _SETTING.match(words[at].text):
        return False
    behind = next((w.text for w in words[at:] if not _SETTING.match(w.text)), "")
    return behind in PROGRAMS


def slurm_variables(script: Path) -> dict[str, str]:
    """What Slurm would set, as dsguard has worked it out from the directives."""
    found = found_in(script)
    words = found[0].command.exported if found else ()
    pairs = [word.text.split("=", 1) for word in words if word.known]
    return {name: value for name, value in pairs if name.startswith(("SLURM_", "PBS_", "LSB_"))}


@needs_bash
@pytest.mark.parametrize(
    "script", [s for s in SCRIPTS if s.suffix not in _NO_SHELL], ids=lambda path: path.name
)
def test_bash_runs_what_is_found(script: Path, tmp_path: Path) -> None:
    text = script.read_bytes().replace(b"\r\n", b"\n")
    variables = {**slurm_variables(script), **_CALLED_WITH.get(script.name, {})}
    runs = commands_run(text, tmp_path, variables)
    found = [words_run(launch.command.words) for launch in found_in(script)]
    if script.name in _NEVER_RUN:
        assert not runs
        return
    matched = [any(agrees(words, run) for run in runs) for words in found]
    assert any(matched) if script.name in _SOME_RUN else all(matched), (runs, found)
