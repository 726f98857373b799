"""Asking the real bash what a script of ours runs.

The launchers are replaced by a program that only writes down its words, and that runs the text
of ``bash -c`` for what stands before it. The script runs in an empty folder without environment.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from dsguard.launch.words import Word

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="bash is not installed")

PROGRAMS = (
    "deepspeed", "torchrun", "accelerate", "python", "python3", "srun", "mpirun", "mpiexec",
    "singularity", "uv", "jsrun",
)  # fmt: skip
_OTHER_SHELLS = {
    "sbatch": 'for at in $(seq $#); do next=$((at + 1)); if [ "${!at}" = --wrap ]; then '
    'exec bash -c "${!next}"; fi; done\n'
    'if [ $# -gt 0 ] && [ -f "${@: -1}" ]; then exec bash "${@: -1}"; fi; exec bash',
    "ssh": 'while [ "${1:0:1}" = - ]; do shift; done; shift\n'
    'if [ $# = 0 ]; then exec bash; fi; exec bash -c "$*"',
    "tmux": 'exec bash -c "${@: -1}"',
}
"""Programs that run a text elsewhere, here in its place."""
_ABSENT = (
    "nvidia-smi", "scontrol", "module", "conda", "pip", "ds_report", "pgrep", "nproc", "hostname",
)  # fmt: skip
_FOLDERS = ("examples/llm", "examples/vision", "src")
_RECORDER = r"""#!{bash}
words=("${{0##*/}}" "$@")
for at in "${{!words[@]}}"; do
    if [ "${{words[$at]}}" = bash ] && [ "${{words[$at + 1]}}" = -c ]; then
        outer=("${{words[@]:0:$at}}")
        export RECORD_OUTER="$RECORD.outer.$$"
        declare -p outer > "$RECORD_OUTER"
        exec {bash} -c "${{words[$at + 2]}}"
    fi
done
outer=()
if [ -f "$RECORD_OUTER" ]; then
    . "$RECORD_OUTER"
    rm -f "$RECORD_OUTER"
fi
printf '%s\0' "${{outer[@]}}" "${{words[@]}}" $'\1' > "$RECORD.$$"
cat "$RECORD.$$" >> "$RECORD"
"""
"""Programs can run side by side: each appends all its words in one write, that of ``cat``."""


def commands_run(
    script: bytes, folder: Path, variables: Mapping[str, str] | None = None
) -> list[list[str]]:
    """The words of every launcher that bash runs for a script, in order."""
    assert BASH is not None
    programs, work = folder / "bin", folder / "work"
    programs.mkdir()
    for name in _FOLDERS:
        (work / name).mkdir(parents=True)
    for name in PROGRAMS:
        program = programs / name
        program.write_text(_RECORDER.format(bash=BASH))
        program.chmod(0o755)
    for name, text in _OTHER_SHELLS.items():
        program = programs / name
        program.write_text(f"#!{BASH}\n{text}\n")
        program.chmod(0o755)
    for name in _ABSENT:
        program = programs / name
        program.write_text(f"#!{BASH}\nexit 0\n")
        program.chmod(0o755)
    (folder / "script").write_bytes(script + b"\nwait\n")
    record = folder / "record"
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "RECORD": str(record),
        **(variables or {}),
    }
    subprocess.run(
        [BASH, str(folder / "script")],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    text = record.read_text() if record.exists() else ""
    return [run.split("\0")[:-1] for run in text.split("\1\0") if run]


def agrees(words: Sequence[Word], run: Sequence[str]) -> bool:
    """Whether a command is what bash ran; an unknown word stands for any words."""
    possible = {0}
    for word in words:
        following: set[int] = set()
        for at in possible:
            if not word.known:
                following.update(range(at, len(run) + 1))
            elif run[at : at + 1] == [word.text]:
                following.add(at + 1)
        possible = following
    return len(run) in possible
