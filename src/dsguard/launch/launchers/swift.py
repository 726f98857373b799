"""``swift sft`` of ms-swift: torchrun where NPROC_PER_NODE or NNODES is set, else one process.

Source: ``swift/cli/main.py`` (``cli_main``, ``get_torchrun_args``; ``parse_yaml_args`` sets the
variables under ``ENV`` of a file that are not set); read, not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.jobs.find import SUFFIXES
from dsguard.launch.jobs.job import JobFileError
from dsguard.launch.jobs.keys import key_argument, members
from dsguard.launch.jobs.load import load_job
from dsguard.launch.launchers.variables import start_nothing, start_python, start_torchrun
from dsguard.reading.errors import YamlUnavailableError

if TYPE_CHECKING:
    from dsguard.launch.call import Call
    from dsguard.launch.context import Argument, LaunchContext

_TRAINING = ("pt", "sft", "rlhf", "dpo", "orpo", "simpo")


def read(call: Call) -> LaunchContext:
    """Read the words after ``swift``."""
    if not call.words or call.words[0].text not in _TRAINING:
        return start_nothing(call, "this subcommand of swift starts no training")
    method = call.words[0].text
    name = method if method in ("pt", "sft") else "rlhf"
    script, words = call.words[0]._replace(text=f"swift.cli.{name}"), call.words[1:]
    variables = {**_file_variables(call), **{a.flag: a for a in call.environment}}
    options = {
        "nnodes": variables.get("NNODES"),
        "nproc_per_node": variables.get("NPROC_PER_NODE"),
    }
    if not any(options.values()):
        return start_python(call, script, words)
    return start_torchrun(call, script, words, options)


def _file_variables(call: Call) -> dict[str, Argument]:
    """The variables that a job file sets; what is wrong with it is said where it is read."""
    words = call.words[1:]
    if not words or not words[0].known or not words[0].text.endswith(SUFFIXES):
        return {}
    name = words[0].text
    try:
        document = load_job(call.surroundings.folder / name, name, call.location)
    except (JobFileError, YamlUnavailableError):
        return {}
    found = (key_argument(document, m, m.key, "/ENV") for m in members(document, "/ENV"))
    return {argument.flag: argument for argument in found if argument is not None}
