"""What the rules of this family share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.frontends.base import FrontEndName
from dsguard.frontends.requests import Request
from dsguard.launch.context import Argument, LauncherName
from dsguard.model.finding import Confidence
from dsguard.model.tree import Document, Object

if TYPE_CHECKING:
    from dsguard.facts.case import Case

PRECISIONS = ("fp16", "bf16")
_LAUNCHER_PRECISION = "mixed_precision"


def read_by(case: Case, *names: FrontEndName) -> Document | None:
    """The document, if it is an object and one of these front ends reads it."""
    if case.document is None or not isinstance(case.document.root, Object):
        return None
    if case.front_end is None or case.front_end.name not in names:
        return None
    return case.document


def launcher_option(case: Case, name: str) -> Argument | None:
    """An option of ``accelerate launch`` with its value, if it is known."""
    if case.launch is None or case.launch.launcher is not LauncherName.ACCELERATE:
        return None
    argument = case.launch.launcher_arguments.get(name)
    if argument is None or argument.value is None or not argument.known:
        return None
    return argument


def handed_on(case: Case) -> bool:
    """Whether the Trainer gets the config from ``accelerate launch`` and not by ``--deepspeed``."""
    if launcher_option(case, "deepspeed_config_file") is None or case.launch is None:
        return False
    return case.launch.arguments.get("deepspeed") is None


def own_switch(case: Case, name: str) -> Request | None:
    """``--bf16`` or ``--fp16`` of the script itself, on or off; not what the launcher is told."""
    request = case.requests.on_or_off(name)
    return request if request is not None and request.name != _LAUNCHER_PRECISION else None


def asked_precision(case: Case) -> Request | None:
    """The 16-bit format that is asked for, as ``fp16`` or ``bf16``; None where none is.

    TrainingArguments have a switch for each. A loop of its own takes what ``accelerate launch``
    is told, unless the script hands its own ``--mixed_precision`` or switch to ``Accelerator``.
    """
    switches = [(name, own_switch(case, name)) for name in PRECISIONS]
    on = [(name, request) for name, request in switches if request is not None and request.value]
    own_loop = case.front_end is not None and case.front_end.name is FrontEndName.ACCELERATE
    if len(on) == 1:
        name, request = on[0]
        confidence = Confidence.MEDIUM if own_loop else request.confidence
        return Request(name, request.name, request.flag, request.origin, confidence)
    if on or not own_loop:
        return None
    given = case.requests.precision()
    if given is not None:
        flag = f"{given.flag} {given.value}"
        return replace(given, flag=flag) if given.value in PRECISIONS else None
    word = case.requests.text(_LAUNCHER_PRECISION)
    if word is not None:
        if word.value not in PRECISIONS:
            return None
        return Request(
            word.value, word.name, f"{word.flag} {word.value}", word.origin, Confidence.MEDIUM
        )
    option = launcher_option(case, _LAUNCHER_PRECISION)
    if option is None or option.value not in PRECISIONS:
        return None
    flag = f"{option.flag} {option.value}"
    return Request(option.value, option.name, flag, option.origin(), Confidence.HIGH)
