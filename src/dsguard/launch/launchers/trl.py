"""``trl sft``: ``accelerate launch`` on a script of TRL's own.

Sources: ``trl/cli/commands/training.py`` (what the script does not know goes to accelerate) and
``trl/cli/accelerate_config.py`` (``--accelerate_config`` is a file, or the name of one that TRL
brings along); read, not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import Argument, LaunchContext, Word
from dsguard.launch.jobs.job import JobFileError
from dsguard.launch.jobs.keys import key_argument, members
from dsguard.launch.jobs.load import load_job
from dsguard.launch.jobs.trl import SCRIPTS
from dsguard.launch.launchers import accelerate
from dsguard.launch.launchers.accelerate_options import OPTIONS
from dsguard.launch.launchers.variables import start_nothing, start_unknown
from dsguard.model.source import Source
from dsguard.reading.errors import YamlUnavailableError
from dsguard.reading.yaml import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.launch.call import Call
    from dsguard.model.tree import Document

_TRAINING = ("sft", "dpo", "grpo", "kto", "reward", "rloo")
_CONFIG = "accelerate_config"
_OF_THE_SCRIPT = ("gradient_accumulation_steps", "debug", "help", "env")
"""Options of accelerate that the script takes: it has them, too."""

_SHIPPED = {
    "zero1": "  zero_stage: 1\n  gradient_accumulation_steps: auto\n",
    "zero2": "  zero_stage: 2\n",
    "zero3": "  zero_stage: 3\n  zero3_init_flag: true\n  zero3_save_16bit_model: true\n",
}
"""What matters of the DeepSpeed files that TRL brings along, beside what they share."""

_SHARED = """\
num_processes: 8
num_machines: 1
machine_rank: 0
mixed_precision: bf16
distributed_type: DEEPSPEED
deepspeed_config:
  deepspeed_multinode_launcher: standard
"""


def read(call: Call) -> LaunchContext:
    """Read the words after ``trl``."""
    if not call.words or call.words[0].text not in _TRAINING:
        return start_nothing(call, "this subcommand of trl starts no training")
    script = call.words[0]._replace(text=SCRIPTS + call.words[0].text)
    config, launch, own = _divide(call.words[1:])
    keys = _keys(call, own)
    named = next((key.value for key in keys if key.name == _CONFIG), None)
    name = config.text if config is not None else named
    words = [*launch, Word("-m", script.span), script, *own]
    shipped: Document | None = None
    if name is not None and not _is_file(call, name):
        if name not in _SHIPPED:
            reason = f"dsguard does not know TRL's own file for {name}"
            return start_unknown(call, script, own, reason)
        try:
            shipped = _shipped(name)
        except YamlUnavailableError as error:
            return start_unknown(call, script, own, str(error))
    elif name is not None:
        place = config or call.program
        words = [Word("--config_file", place.span), Word(name, place.span), *words]
    return accelerate.read_options(call, words, shipped, [k for k in keys if k.name != _CONFIG])


def _divide(words: Sequence[Word]) -> tuple[Word | None, list[Word], list[Word]]:
    """The name after ``--accelerate_config``, what accelerate takes, and what the script takes."""
    config: Word | None = None
    launch: list[Word] = []
    own: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        flag, equals, text = word.text.partition("=")
        option = OPTIONS.by_name.get(flag) if flag.startswith("--") else None
        if option is not None and option.dest in _OF_THE_SCRIPT:
            option = None
        named = flag in (f"--{_CONFIG}", "--accelerate-config")
        takes_value = named or (option is not None and option.convert is not None)
        width = 2 if takes_value and not equals and at + 1 < len(words) else 1
        if named:
            config = word._replace(text=text) if equals else words[at + width - 1]
        else:
            (own if option is None else launch).extend(words[at : at + width])
        at += width
    return config, launch, own


def _keys(call: Call, own: Sequence[Word]) -> list[Argument]:
    """The keys of the ``--config`` file that are accelerate's and not the script's."""
    at = next((i for i, word in enumerate(own) if word.text == "--config"), None)
    if at is None or at + 1 >= len(own) or not own[at + 1].known:
        return []
    name = own[at + 1].text
    try:
        document = load_job(call.surroundings.folder / name, name, call.location)
    except (JobFileError, YamlUnavailableError):
        return []
    known = {option.dest for option in OPTIONS.options} - set(_OF_THE_SCRIPT) | {_CONFIG}
    found = (key_argument(document, m, m.key) for m in members(document) if m.key in known)
    return [argument for argument in found if argument is not None]


def _is_file(call: Call, name: str) -> bool:
    try:
        return (call.surroundings.folder / name).is_file()
    except (OSError, ValueError):
        return False


def _shipped(name: str) -> Document:
    """TRL's own file of this name, as far as it matters."""
    text = _SHARED + _SHIPPED[name]
    return parse_yaml(Source(f"trl/accelerate_configs/{name}.yaml", text, is_file=False))
