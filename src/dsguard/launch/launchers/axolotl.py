"""``axolotl train``: starts accelerate (or torchrun) on its own module.

Sources: ``axolotl/cli/main.py`` (``train``) and ``axolotl/cli/utils/train.py``
(``launch_training``: the words behind ``--`` are the launcher's own); read, not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import LaunchContext, Word
from dsguard.launch.launchers.variables import start_nothing, start_python, start_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.launch.call import Call

_MODULE = "axolotl.cli.train"
_ELSEWHERE = {
    "cloud": "it runs in a cloud",
    "sweep": "a sweep starts many trainings",
    "runtime": "a --runtime file says how it is launched",
    "use_ray": "Ray starts the workers",
}
"""Options that leave the launch to something that dsguard does not read."""

_OF_LAUNCHER = {
    "accelerate": {"num_processes": "num_processes", "main_process_port": "main_process_port"},
    "torchrun": {"num_processes": "nproc_per_node", "main_process_port": "master_port"},
}
"""axolotl's own options → what they become for the launcher."""


def read(call: Call) -> LaunchContext:
    """Read the words after ``axolotl``."""
    if not call.words or call.words[0].text != "train":
        return start_nothing(call, "only `axolotl train` starts a training")
    script = call.words[0]._replace(text=_MODULE)
    own, behind = _split(call.words[1:])
    launcher = "accelerate"
    left: list[Word] = []
    moved: list[tuple[str, Word]] = []
    at = 0
    while at < len(own):
        name, value, width = _option(own, at)
        taken, at = own[at : at + width], at + width
        if name in _ELSEWHERE:
            return start_unknown(call, script, left, _ELSEWHERE[name])
        if name == "launcher" and value is not None:
            launcher = value.text
            continue
        if name in ("accelerate", "no_accelerate"):
            launcher = "accelerate" if name == "accelerate" else "python"
            continue
        if name in ("num_processes", "main_process_port") and value is not None:
            moved.append((name, value))
            continue
        left.extend(taken)
    if launcher == "python":
        return start_python(call, script, left)
    if launcher not in _OF_LAUNCHER:
        return start_unknown(call, script, left, f"axolotl starts it with {launcher}")
    options = [
        word
        for name, value in moved
        for word in (_word(value, f"--{_OF_LAUNCHER[launcher][name]}"), value)
    ]
    start = ["accelerate", "launch"] if launcher == "accelerate" else ["torchrun"]
    words = [_word(call.program, text) for text in start]
    return call.nested((*words, *options, *behind, _word(script, "-m"), script, *left))


def _split(words: Sequence[Word]) -> tuple[Sequence[Word], Sequence[Word]]:
    """What is axolotl's own, and what stands behind ``--``."""
    at = next((i for i, word in enumerate(words) if word.text == "--"), len(words))
    return words[:at], words[at + 1 :]


def _option(words: Sequence[Word], at: int) -> tuple[str, Word | None, int]:
    """An option's name, its value, and how many words both take; no name for an operand."""
    word = words[at]
    if not word.text.startswith("--"):
        return "", None, 1
    name, equals, text = word.text[2:].partition("=")
    name = name.replace("-", "_")
    if equals:
        return name, word._replace(text=text), 1
    following = words[at + 1] if at + 1 < len(words) else None
    if following is None or following.text.startswith("-") or name in ("accelerate", "use_ray"):
        return name, None, 1
    return name, following, 2


def _word(place: Word, text: str) -> Word:
    """A word that axolotl adds, at the place of the one that makes it do so."""
    return Word(text, place.span)
