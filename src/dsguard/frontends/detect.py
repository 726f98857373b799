"""Which front end a launch is for, and which config file it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.frontends.flags import TRAINER_NAMES, reader_of
from dsguard.launch.context import ONLY_TRAINING_ARGUMENTS, Argument, LaunchContext, LauncherName
from dsguard.model.fact import Fact, Known, Origin, OriginKind, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from packaging.version import Version

    from dsguard.frontends.base import FrontEnd
    from dsguard.script.script import Script


def front_end(
    name: FrontEndName, release_of: Callable[[str], Version | None] = lambda package: None
) -> FrontEnd:
    """The front end of this name; ``release_of`` tells the release of a package, None the newest.

    Each is imported where it is used: a config has one.
    """
    if name is FrontEndName.ACCELERATE:
        from dsguard.frontends.accelerate import Accelerate

        return Accelerate(release_of("accelerate"))
    if name is FrontEndName.TRANSFORMERS:
        from dsguard.frontends.transformers import Transformers

        return Transformers()
    if name is FrontEndName.LIGHTNING:
        from dsguard.frontends.lightning import Lightning

        return Lightning()
    from dsguard.frontends.plain import Plain

    return Plain()


def some_trainer_fills(key: str) -> bool:
    """Whether any front end replaces ``"auto"`` under this dotted key."""
    trainers = (FrontEndName.TRANSFORMERS, FrontEndName.ACCELERATE)
    return any(front_end(name).fills(key) for name in trainers)


def config_argument(launch: LaunchContext) -> Argument | None:
    """The argument of the launch that names the DeepSpeed config, if one does.

    The script's ``--deepspeed_config PATH`` (DeepSpeed's own) or ``--deepspeed PATH``
    (TrainingArguments); else Accelerate's ``--deepspeed_config_file PATH``. A bare
    ``--deepspeed`` is DeepSpeed's own switch and names nothing.
    """
    for name in ("deepspeed_config", "deepspeed", "deepscale_config"):
        argument = launch.arguments.get(name)
        if argument is not None and argument.value is not None:
            return argument
    if launch.launcher is LauncherName.ACCELERATE:
        argument = launch.launcher_arguments.get("deepspeed_config_file")
        if argument is not None and argument.value is not None:
            return argument
    for job in reversed(launch.jobs):
        if job.config is not None and job.config.is_file:
            return job.config.argument
    return None


_IMPORTS: dict[FrontEndName, tuple[str, ...]] = {
    FrontEndName.LIGHTNING: ("lightning", "pytorch_lightning"),
    FrontEndName.TRANSFORMERS: TRAINER_NAMES,
    FrontEndName.ACCELERATE: ("accelerate.Accelerator",),
    FrontEndName.PLAIN: ("deepspeed",),
}
"""What a script that uses a front end imports; the first that fits counts."""


def detect(launch: LaunchContext | None, script: Script | None, *, has_auto: bool) -> Fact:
    """The front end that reads the config: Known with its :class:`FrontEndName`, or unknown.

    The framework of a job file comes first, then whom the script hands the config that the launch
    names, then what the script imports.
    ``has_auto`` says whether the config leaves values to a trainer. Without any sign,
    DeepSpeed's own reading is assumed, unless the config waits for a trainer.
    """
    if launch is not None:
        framework = _of_framework(launch)
        if framework is not None:
            return framework
        named = config_argument(launch)
        reader = reader_of(named, script) if named is not None else None
        if reader is not None:
            return reader
        imported = _by_imports(script)
        if imported is not None:
            return imported
        sign = launch.arguments.get(*ONLY_TRAINING_ARGUMENTS)
        if sign is not None and launch.arguments.get("deepspeed") is None:
            if launch.launcher is LauncherName.ACCELERATE and script is None:
                # Loops of their own under Accelerate take the same flags.
                return Unknown(f"{sign.flag} may be the Trainer's or the script's own")
            return Known(FrontEndName.TRANSFORMERS, sign.origin())
        if launch.launcher is LauncherName.ACCELERATE:
            origin = Origin(OriginKind.LAUNCH, launch.launcher_location, "accelerate launch")
            if launch.stands_alone:
                from dsguard.launch.jobs import accelerate

                origin = Origin(OriginKind.JOBFILE, argument=accelerate.TITLE)
            return Known(FrontEndName.ACCELERATE, origin)
    imported = _by_imports(script) if launch is None else None
    if imported is not None:
        return imported
    if has_auto:
        return Unknown('the config says "auto", but nothing names the trainer that fills it')
    return Known(
        FrontEndName.PLAIN,
        Origin(OriginKind.DEFAULT, whose="dsguard (no sign of a trainer)"),
    )


def _of_framework(launch: LaunchContext) -> Known | None:
    """The front end of the framework that reads the arguments of the script, if one does."""
    if not launch.jobs:
        return None
    from dsguard.launch.jobs import accelerate

    own = [job for job in launch.jobs if job.name != accelerate.NAME]
    if not own:
        return None
    return Known(
        FrontEndName(own[-1].front_end), Origin(OriginKind.JOBFILE, argument=own[-1].title)
    )


_SETUPS = {
    "DeepSpeedStrategy": FrontEndName.LIGHTNING,
    "Accelerator": FrontEndName.ACCELERATE,
    "DeepSpeedPlugin": FrontEndName.ACCELERATE,
}
"""Classes that only scripts of a front end make, however they are imported."""


def _by_imports(script: Script | None) -> Known | None:
    """What the imports of a script say, or the objects that it makes."""
    if script is None:
        return None
    for name, modules in _IMPORTS.items():
        made = [call for call in script.setups if _SETUPS.get(call.framework) is name]
        if not script.imports.isdisjoint(modules):
            source = f"the imports of {script.source.name}"
            return Known(name, Origin(OriginKind.SCRIPT, argument=source))
        if made:
            return Known(name, Origin(OriginKind.SCRIPT, made[0].location))
    return None
