"""Who reads a config that an argument of the script names.

``--deepspeed_config`` is DeepSpeed's own flag and ``--deepspeed`` that of TrainingArguments, but
any script may declare either and hand it to whom it likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.launch.context import ONLY_TRAINING_ARGUMENTS
from dsguard.model.fact import Known, Origin, OriginKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.launch.context import Argument, LaunchContext
    from dsguard.script.script import Script

BY_FLAG = {
    "deepspeed_config": FrontEndName.PLAIN,
    "deepspeed": FrontEndName.TRANSFORMERS,
}
"""Whose flag it is where the script does not say otherwise."""

TRAINER_NAMES = (
    "transformers.Trainer",
    "transformers.Seq2SeqTrainer",
    "transformers.TrainingArguments",
    "transformers.Seq2SeqTrainingArguments",
    "trl",
)
"""What a script of HF Trainer or TRL imports."""

_TAKES = {
    ("DeepSpeedPlugin", "hf_ds_config"): FrontEndName.ACCELERATE,
    ("DeepSpeedStrategy", "config"): FrontEndName.LIGHTNING,
}
"""Which parameter takes the config, by class."""


def reader_of(argument: Argument, script: Script | None) -> Known | None:
    """The front end that gets an argument of :data:`BY_FLAG`; None for another argument.

    What the script does with the argument comes first, then what it makes, then the name. An
    argument that the script's parser refuses reaches nothing that it makes.
    """
    if argument.name not in BY_FLAG:
        return None
    own = BY_FLAG[argument.name]
    if script is not None:
        handed = dict(_handed(script, argument.name))
        if len(handed) == 1 and own not in handed:
            ((name, origin),) = handed.items()
            return Known(name, origin)
        made = dict(_made(script)) if _may_take(script, argument) else {}
        if not handed and made and own not in made:
            name, origin = next(iter(made.items()))
            # HF Trainer may stand in a module that is not read, and Accelerator beside it.
            if own is FrontEndName.PLAIN or name is not FrontEndName.ACCELERATE:
                return Known(name, origin)
    return Known(own, argument.origin())


def is_guess(argument: Argument | None, launch: LaunchContext, script: Script | None) -> bool:
    """Whether nothing but the name of the flag tells who reads the config that it names."""
    if argument is None or argument.name not in BY_FLAG or launch.jobs:
        return False
    own = BY_FLAG[argument.name]
    if own is FrontEndName.TRANSFORMERS:
        signs: tuple[str, ...] = ONLY_TRAINING_ARGUMENTS
    else:
        # DeepSpeed's own switch, which its parser declares beside --deepspeed_config.
        signs = ("deepspeed",)
    if launch.arguments.get(*(name for name in signs if name != argument.name)) is not None:
        return False
    if script is None:
        return True
    if dict(_handed(script, argument.name)):
        return False
    return not (_may_take(script, argument) and dict(_made(script)))


def _may_take(script: Script, argument: Argument) -> bool:
    """Whether the script's parser takes an argument, or is not known to refuse it."""
    if script.hands_on_rest:
        return True
    from dsguard.script.lookup import Ambiguous, expand

    means = expand(script, argument.flag)
    return means is not None and not isinstance(means, Ambiguous)


def _handed(script: Script, name: str) -> Iterator[tuple[FrontEndName, Origin]]:
    """Who is plainly handed an argument as the config."""
    # Imported where there is a script: a config alone needs nothing that reads them.
    from dsguard.script.declaration import FromArgument
    from dsguard.script.loop.description import Maker

    argument = FromArgument(name)
    for call in script.setups:
        for keyword, value in call.keywords.items():
            if value != argument:
                continue
            taker = _TAKES.get((call.framework, keyword))
            if keyword == "deepspeed" and call in script.training_arguments:
                taker = FrontEndName.TRANSFORMERS
            if taker is not None:
                yield taker, Origin(OriginKind.SCRIPT, call.places[keyword])
    for engine in script.loop.engines:
        config = engine.config
        if engine.maker is Maker.DEEPSPEED and config is not None and config.path == argument:
            yield FrontEndName.PLAIN, Origin(OriginKind.SCRIPT, config.location)


def _made(script: Script) -> Iterator[tuple[FrontEndName, Origin]]:
    """The front ends whose objects the script makes, the most telling first."""
    from dsguard.script.loop.description import Maker
    from dsguard.script.script import ParserKind

    for call in script.setups:
        if call.framework == "DeepSpeedStrategy":
            yield FrontEndName.LIGHTNING, Origin(OriginKind.SCRIPT, call.location)
    trainer = not script.imports.isdisjoint(TRAINER_NAMES) or script.is_training_arguments
    if trainer or script.parser is ParserKind.HF or script.training_arguments:
        imports = Origin(OriginKind.SCRIPT, argument=f"the imports of {script.source.name}")
        yield FrontEndName.TRANSFORMERS, imports
    for engine in script.loop.engines:
        if engine.maker is Maker.DEEPSPEED:
            yield FrontEndName.PLAIN, Origin(OriginKind.SCRIPT, engine.location)
    if script.adds_deepspeed_arguments:
        source = f"deepspeed.add_config_arguments in {script.source.name}"
        yield FrontEndName.PLAIN, Origin(OriginKind.SCRIPT, argument=source)
    for call in script.setups:
        if call.framework in ("Accelerator", "DeepSpeedPlugin"):
            yield FrontEndName.ACCELERATE, Origin(OriginKind.SCRIPT, call.location)
