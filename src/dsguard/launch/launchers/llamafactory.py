"""``llamafactory-cli train``: torchrun where it is forced or the machine has many devices.

Source: ``llamafactory/launcher.py`` (``launch``); read, not run. The variables NNODES,
NPROC_PER_NODE and so on become torchrun's options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.arguments import hidden_reason
from dsguard.launch.context import Argument, LaunchContext, Word
from dsguard.launch.jobs.keys import is_on
from dsguard.launch.launchers.variables import (
    start_nothing,
    start_python,
    start_torchrun,
    start_unknown,
)
from dsguard.model.fact import Known

if TYPE_CHECKING:
    from dsguard.launch.call import Call

_TRAINING = ("train", "sft", "dpo", "rm")
"""``train``, and the commands of version 1."""


def read(call: Call) -> LaunchContext:
    """Read the words after ``llamafactory-cli``."""
    if not call.words or call.words[0].text not in _TRAINING:
        return start_nothing(call, "only `llamafactory-cli train` starts a training")
    script, words = call.words[0]._replace(text="llamafactory.launcher"), call.words[1:]
    forced, ray = call.variable("FORCE_TORCHRUN"), call.variable("USE_RAY")
    devices = call.surroundings.devices
    if is_on(ray):
        return start_unknown(call, script, words, "Ray starts the workers")
    hidden = next((v for v in (forced, ray) if v is not None and not v.known), None)
    if hidden is not None:
        return start_unknown(call, script, words, hidden_reason(hidden))
    if is_on(forced) or is_on(call.variable("USE_MCA")):
        return _torchrun(call, script, words)
    if not isinstance(devices, Known):
        reason = "without FORCE_TORCHRUN=1, one process or as many as the machine has devices"
        return start_unknown(call, script, words, reason)
    if devices.value > 1:
        return _torchrun(call, script, words)
    return start_python(call, script, words)


def _torchrun(call: Call, script: Word, words: tuple[Word, ...]) -> LaunchContext:
    """NNODES nodes (1) with NPROC_PER_NODE processes (the number of devices)."""
    nodes = call.variable("NNODES")
    bounds = call.variable("MIN_NNODES"), call.variable("MAX_NNODES")
    if call.variable("RDZV_ID") is not None and all(bounds):
        reason = "between MIN_NNODES and MAX_NNODES machines may take part"
        return start_unknown(call, script, words, reason)
    processes = call.variable("NPROC_PER_NODE") or _all_devices(call)
    return start_torchrun(call, script, words, {"nnodes": nodes, "nproc_per_node": processes})


def _all_devices(call: Call) -> Argument:
    """What stands for the count that LLaMA-Factory makes itself."""
    place = call.location
    return Argument("nproc_per_node", "NPROC_PER_NODE", "gpu", place, place)
