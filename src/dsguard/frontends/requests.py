"""What is asked for outside the config: by flags, job files and the script's own defaults.

A name that means one thing in every training script it appears in
(``--gradient_accumulation_steps``) is taken with high confidence; a name that could mean
something else (``--batch_size``: per process, or for all of them?) with less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from dsguard.launch.context import Argument, LaunchContext, LauncherName
from dsguard.model.fact import Candidate, Fact, Known, Origin, OriginKind, Unknown
from dsguard.model.finding import Confidence
from dsguard.script.declaration import Constant, FromArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dsguard.script.script import Script, SetupCall


class Request(Struct, frozen=True):
    """A value that is asked for under a name of the asker's own.

    ``name`` is the flag in underscore spelling without dashes, ``flag`` how to show it.
    ``explicit`` tells what somebody wrote for this run from a default.
    """

    value: Any
    name: str
    flag: str
    origin: Origin
    confidence: Confidence
    explicit: bool = True

    @property
    def candidate(self) -> Candidate:
        """The value with its origin."""
        return Candidate(self.value, self.origin)


_NAMES: dict[str, dict[str, Confidence]] = {
    "gradient_accumulation_steps": {
        "gradient_accumulation_steps": Confidence.HIGH,
        "grad_accumulation_steps": Confidence.HIGH,
        "gradient_accumulation": Confidence.HIGH,
        "grad_accum_steps": Confidence.HIGH,
        "accumulation_steps": Confidence.MEDIUM,
        "accum_steps": Confidence.MEDIUM,
        "accumulate_grad_batches": Confidence.HIGH,
        "grad_accum": Confidence.MEDIUM,
    },
    "train_micro_batch_size_per_gpu": {
        "per_device_train_batch_size": Confidence.HIGH,
        "train_micro_batch_size_per_gpu": Confidence.HIGH,
        "per_gpu_train_batch_size": Confidence.HIGH,
        "micro_batch_size": Confidence.HIGH,
        "micro_train_batch_size": Confidence.HIGH,
        "batch_size_per_gpu": Confidence.HIGH,
        "batch_size": Confidence.MEDIUM,
        "train_bsz": Confidence.MEDIUM,
        "bsz": Confidence.MEDIUM,
    },
    "gradient_clipping": {
        "gradient_clipping": Confidence.HIGH,
        "max_grad_norm": Confidence.HIGH,
        "clip_grad_norm": Confidence.HIGH,
        "clip_grad": Confidence.MEDIUM,
        "gradient_clip_val": Confidence.HIGH,
    },
    "optimizer.params.lr": {
        "learning_rate": Confidence.HIGH,
        "lr": Confidence.HIGH,
    },
    "optimizer.params.weight_decay": {"weight_decay": Confidence.HIGH},
    "optimizer.params.eps": {"adam_epsilon": Confidence.HIGH},
    "scheduler.params.warmup_max_lr": {"learning_rate": Confidence.HIGH},
    "scheduler.params.warmup_num_steps": {
        "warmup_steps": Confidence.HIGH,
        "num_warmup_steps": Confidence.HIGH,
    },
    "scheduler.params.total_num_steps": {
        "max_steps": Confidence.HIGH,
        "max_train_steps": Confidence.HIGH,
    },
}
"""Dotted DeepSpeed key → the names that ask for it."""

_WHOLE = frozenset(
    {
        "gradient_accumulation_steps",
        "train_micro_batch_size_per_gpu",
        "scheduler.params.warmup_num_steps",
        "scheduler.params.total_num_steps",
    }
)

_ON = ("true", "1", "yes", "t", "y")

_WITHOUT_OWN_DEFAULTS = frozenset({"axolotl", "llamafactory", "swift"})
"""Frameworks that leave to transformers what they do not set; TRL's differ by its script."""

_DEFAULTS = frozenset(
    {
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "max_grad_norm",
        "learning_rate",
        "bf16",
        "fp16",
    }
)
"""The defaults of transformers that these frameworks are known to keep."""


class _Parameter(Struct, frozen=True):
    """A parameter of a class that sets a front end up, and its default."""

    of: str
    name: str
    default: float | None = None


_PARAMETERS: dict[str, tuple[_Parameter, ...]] = {
    "gradient_accumulation_steps": (
        _Parameter("GradientAccumulationPlugin", "num_steps"),
        _Parameter("Accelerator", "gradient_accumulation_steps", 1),
        _Parameter("Trainer", "accumulate_grad_batches", 1),
    ),
    "gradient_clipping": (_Parameter("Trainer", "gradient_clip_val", 0.0),),
}
"""Dotted DeepSpeed key → what Accelerate and Lightning are given for it, the strongest first.

``DeepSpeedPlugin`` is not among them: without a config it builds one of what it is given, and
beside one it only fills ``"auto"``."""

PLUGIN = {
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_clipping": "gradient_clipping",
    "zero_optimization.stage": "zero_stage",
    "zero_optimization.offload_optimizer.device": "offload_optimizer_device",
    "zero_optimization.offload_param.device": "offload_param_device",
    "zero_optimization.stage3_gather_16bit_weights_on_model_save": "zero3_save_16bit_model",
}
"""Dotted DeepSpeed key → the parameter of Accelerate's ``DeepSpeedPlugin``."""

_PRECISIONS = {"Accelerator": "mixed_precision", "Trainer": "precision"}

_FORMATS = {
    **dict.fromkeys(("16", "16-mixed", "16-true"), "fp16"),
    **dict.fromkeys(("bf16-mixed", "bf16-true"), "bf16"),
}
"""Lightning's words for the formats."""

PARALLEL_FLAGS = (
    "tensor_model_parallel_size",
    "model_parallel_size",
    "pipeline_model_parallel_size",
    "pipe_parallel_size",
    "context_parallel_size",
)
"""Flags of Megatron-style scripts, whose ``mpu`` tells DeepSpeed how many ranks share a batch."""


class Requests:
    """Everything that is asked for outside the config of one run.

    The command line and the job file come first, then what the script passes to
    TrainingArguments, then the script's own defaults, then the framework's.
    """

    def __init__(self, launch: LaunchContext | None, script: Script | None = None) -> None:
        self._launch = launch
        self._script = script if script is not None and script.unreadable is None else None
        self._meant: dict[str, str | None] = {}

    def get(self, key: str) -> Request | None:
        """What is asked for under a dotted DeepSpeed key, None where nothing says.

        A value that only the shell could expand, or that is no number, is not an answer.
        """
        handed = self.handed(key)
        if handed is not None and handed.explicit:
            return handed
        return _as_number(self._find(_NAMES.get(key, {})), key)

    def handed(self, key: str) -> Request | None:
        """What the script plainly gives to ``Accelerator(…)`` or to Lightning's ``Trainer(…)``.

        An option of ``accelerate launch`` overrules the one, but not a plugin. Where the only
        call leaves the parameter out, its default is what is given.
        """
        script = self._script
        if script is None or key not in _PARAMETERS:
            return None
        for parameter in _PARAMETERS[key]:
            calls = [call for call in script.setups if call.framework == parameter.of]
            given = [call for call in calls if parameter.name in call.keywords]
            if (
                len(calls) > 1
                or parameter.name in script.reassigned
                or any(not call.complete for call in calls if call not in given)
            ):
                return None
            option = self._launcher_option(key) if parameter.of == "Accelerator" else None
            if calls and option is not None:
                return _as_number(option, key)
            if given:
                return _as_number(self._passed(given[0], parameter.name, Confidence.HIGH), key)
            if calls and parameter.default is not None:
                return _left_out(calls[0], parameter.name, parameter.default)
        return None

    def filled_by_plugin(self, key: str) -> Fact | None:
        """What a ``DeepSpeedPlugin(…)`` of the script says for a key, where that is ``"auto"``.

        Unknown where that is only known when it runs, None where no plugin is given anything.
        """
        script = self._script
        if script is None or key not in PLUGIN:
            return None
        calls = [call for call in script.setups if call.framework == "DeepSpeedPlugin"]
        if all(call.complete and not is_given(call, PLUGIN[key]) for call in calls):
            return None
        request = None
        if len(calls) == 1 and is_given(calls[0], PLUGIN[key]):
            request = self._passed(calls[0], PLUGIN[key], Confidence.HIGH)
            if request is not None and key in _NAMES:
                request = _as_number(request, key)
        if request is None or request.name in script.reassigned:
            return Unknown(f"the script's DeepSpeedPlugin decides about {key} when it runs")
        return Known(request.value, request.origin)

    def parameter(self, of: str, name: str, default: Any) -> Request | None:
        """What the script's one call of a class that sets a front end up is given under a name.

        Where the call leaves it out, ``default`` counts. None where that is not known.
        """
        script = self._script
        calls = [one for one in script.setups if one.framework == of] if script else []
        if script is None or len(calls) != 1 or name in script.reassigned:
            return None
        (call,) = calls
        if name in call.keywords:
            return self._passed(call, name, Confidence.HIGH)
        if not call.complete:
            return None
        return _left_out(call, name, default)

    def _launcher_option(self, name: str) -> Request | None:
        """An option that ``accelerate launch`` hands on in the environment."""
        if self._launch is None or self._launch.launcher is not LauncherName.ACCELERATE:
            return None
        argument = self._launch.launcher_arguments.get(name)
        if argument is None or argument.value is None or not argument.known:
            return None
        return Request(argument.value, name, argument.flag, argument.origin(), Confidence.HIGH)

    def argument(self, name: str) -> Request | None:
        """What the script's own argument ``name`` is, as a number where it is one."""
        request = self._find({name: Confidence.HIGH})
        if request is None:
            return None
        value = _number(request.value, whole=False)
        return request if value is None else replace(request, value=value)

    def text(self, name: str) -> Request | None:
        """What is asked for under a TrainingArguments name that takes a word."""
        request = self._find({name: Confidence.HIGH})
        return request if request is not None and isinstance(request.value, str) else None

    def on_or_off(self, name: str) -> Request | None:
        """What a switch is set to, such as ``--bf16`` or ``--bf16 false``; None if nobody says."""
        request = self._find({name: Confidence.HIGH}, alone=True) or self._mixed_precision(name)
        if request is not None and not request.explicit and request.value and name == "bf16":
            # TRL's default of bf16 gives way to an explicit fp16.
            other = self.on_or_off("fp16")
            if other is not None and other.value:
                return None
        if request is None or isinstance(request.value, bool):
            return request
        return replace(request, value=str(request.value).lower() in _ON)

    def switch(self, name: str) -> Request | None:
        """A switch that is turned on."""
        request = self.on_or_off(name)
        return request if request is not None and request.value else None

    def undecided(self, name: str) -> str | None:
        """Why it is not known before the run what a switch is set to; None where it is."""
        if self._launch is None or self.on_or_off(name) is not None:
            return None
        given = self._given({name: Confidence.HIGH})
        if given is not None and not given[0].known:
            who = given[0].whose or given[0].flag
            return f"{who} decides about {name} when it runs"
        if not self._launch.arguments.complete:
            return f"{name} may be among the arguments that are only known when it runs"
        return None

    def undecided_key(self, key: str) -> str | None:
        """Why it is not known before the run what is asked for under a dotted key."""
        names = _NAMES.get(key, {})
        if self._launch is None or self.get(key) is not None:
            return None
        given = self._given(names)
        if given is not None and not given[0].known:
            who = given[0].whose or given[0].flag
            return f"{who} decides when it runs"
        if not self._launch.arguments.complete and self._declares(names):
            return "it depends on arguments that are only known when it runs"
        return None

    def _declares(self, names: Iterable[str]) -> bool:
        """Whether the script has an argument of one of these names."""
        if self._script is None:
            return False
        from dsguard.script.lookup import argument_value

        return any(argument_value(self._script, name) is not None for name in names)

    def _find(self, names: dict[str, Confidence], *, alone: bool = False) -> Request | None:
        """The first answer; ``alone`` says that a flag without a value is one."""
        replaced = self._script.replaced if self._script is not None else frozenset()
        if "*" in replaced or any(name in replaced for name in names):
            return None
        in_code = self._in_code(names)
        if in_code is not None:
            return in_code[0]
        if self._given(names) is not None:
            return self._by_flag(names, alone=alone)
        return self._by_default(names)

    def _by_flag(self, names: dict[str, Confidence], *, alone: bool = False) -> Request | None:
        """What the command line or the job file says."""
        given = self._given(names)
        if given is None:
            return None
        argument, confidence = given
        if not argument.known or (argument.value is None and not alone):
            return None
        value = True if argument.value is None else argument.value
        request = Request(
            value,
            argument.name,
            argument.flag,
            argument.origin(),
            confidence,
            explicit=argument.kind is not OriginKind.DEFAULT,
        )
        return self._unless_stored(request)

    def _given(self, names: dict[str, Confidence]) -> tuple[Argument, Confidence] | None:
        """The last argument under one of these names, as it is or behind a prefix with dots."""
        found = None
        for argument in self._launch.arguments if self._launch is not None else ():
            last = argument.name.rpartition(".")[2]
            if argument.name in names:
                found = (argument, names[argument.name])
            elif last in names:
                found = (argument, Confidence.MEDIUM)
            else:
                meant = self._means(argument.flag)
                if meant is not None and meant in names:
                    found = (argument, names[meant])
        return found

    def _means(self, flag: str) -> str | None:
        """The argument of the script that a flag means, where that is sure."""
        if self._script is None:
            return None
        if flag not in self._meant:
            from dsguard.script.lookup import expand

            meant = expand(self._script, flag)
            self._meant[flag] = meant if isinstance(meant, str) else None
        return self._meant[flag]

    def _in_code(self, names: dict[str, Confidence]) -> tuple[Request | None] | None:
        """What the script's one call of TrainingArguments passes under one of these names.

        None where it passes nothing; a tuple of None where that is only known when it runs. A
        script that also parses them into such a class may use either.
        """
        script = self._script
        if script is None or script.framework is not None or len(script.training_arguments) != 1:
            return None
        (call,) = script.training_arguments
        for name, confidence in names.items():
            if name in call.keywords and name not in script.reassigned:
                return (self._passed(call, name, confidence),)
        return None

    def _passed(self, call: SetupCall, name: str, confidence: Confidence) -> Request | None:
        """What a call passes under a name, written there or in an argument of the script."""
        value = call.keywords[name]
        if isinstance(value, Constant) and value.value is not None:
            origin = Origin(OriginKind.SCRIPT, call.places[name])
            return Request(value.value, name, f"{call.class_name}({name})", origin, confidence)
        if not isinstance(value, FromArgument):
            return None
        names = {value.name: confidence}
        return self._by_flag(names) or self._by_default(names)

    def _by_default(self, names: dict[str, Confidence]) -> Request | None:
        """What counts where the command line, all of which is known, says nothing."""
        if self._launch is None or not self._launch.arguments.complete:
            return None
        return self._by_script(names) or self._by_framework(names)

    def _by_script(self, names: dict[str, Confidence]) -> Request | None:
        script = self._script
        if script is None or any(name in script.reassigned for name in names):
            return None
        for name, confidence in names.items():
            request = _declared(script, name, confidence) or _of_framework(script, name, confidence)
            if request is not None:
                return request
        return None

    def _by_framework(self, names: dict[str, Confidence]) -> Request | None:
        """The default of TrainingArguments, where a framework parses them and sets none itself."""
        jobs = self._launch.jobs if self._launch is not None else ()
        if not any(job.name in _WITHOUT_OWN_DEFAULTS for job in jobs):
            return None
        from dsguard.script.training_arguments import framework_default

        for name, confidence in names.items():
            default = framework_default("TrainingArguments", name)
            if name in _DEFAULTS and default is not None and isinstance(default.value, Constant):
                origin = Origin(OriginKind.DEFAULT, whose=default.whose)
                flag = f"the default of {name}"
                return Request(default.value.value, name, flag, origin, confidence, False)
        return None

    def precision(self) -> Request | None:
        """The precision that the script plainly gives to ``Accelerator`` or Lightning's Trainer.

        Its value is ``fp16``, ``bf16`` or the word as it stands.
        """
        for call in self._script.setups if self._script is not None else ():
            name = _PRECISIONS.get(call.framework, "")
            if name in call.keywords and call.keywords[name] != Constant(None):
                request = self._passed(call, name, Confidence.HIGH)
                if request is None:
                    return None
                return replace(request, value=_FORMATS.get(str(request.value), request.value))
        return None

    def _mixed_precision(self, name: str) -> Request | None:
        """The precision that the front end's own object is given, or ``accelerate launch``."""
        request = self.precision() or self._launcher_option("mixed_precision")
        return replace(request, value=True) if request and request.value == name else None

    def _unless_stored(self, request: Request) -> Request:
        """A script that stores to ``args.<name>`` may have the last word."""
        if self._script is not None and request.name in self._script.reassigned:
            return replace(request, confidence=Confidence.MEDIUM)
        return request


def is_given(call: SetupCall, name: str) -> bool:
    """Whether a call is given something else than None under a name."""
    return call.keywords.get(name, Constant(None)) != Constant(None)


def _declared(script: Script, name: str, confidence: Confidence) -> Request | None:
    """The default that the script declares for an argument of this name."""
    from dsguard.script.lookup import argument_value

    declaration = argument_value(script, name)
    if declaration is None or not isinstance(declaration.default, Constant):
        return None
    if declaration.default.value is None:
        return None
    origin = Origin(OriginKind.SCRIPT, declaration.location)
    flag = declaration.flags[0] if declaration.flags else name
    return Request(
        declaration.default.value, name, f"the default of {flag}", origin, confidence, False
    )


def _of_framework(script: Script, name: str, confidence: Confidence) -> Request | None:
    """The framework's own default, if nothing of the script could be missed."""
    from dsguard.script.lookup import framework_value

    default = framework_value(script, name) if not script.gaps else None
    if default is None or not isinstance(default.value, Constant):
        return None
    origin = Origin(OriginKind.DEFAULT, whose=default.whose)
    flag = f"the default of --{name}"
    return Request(default.value.value, name, flag, origin, confidence, False)


def _left_out(call: SetupCall, name: str, default: Any) -> Request:
    """The default of a parameter that a call leaves out."""
    origin = Origin(OriginKind.DEFAULT, whose=call.class_name)
    flag = f"the default of {call.class_name}({name})"
    return Request(default, name, flag, origin, Confidence.HIGH, explicit=False)


def _as_number(request: Request | None, key: str) -> Request | None:
    """A request for a number; None where it is none."""
    value = _number(request.value, whole=key in _WHOLE) if request is not None else None
    return replace(request, value=value) if request is not None and value is not None else None


def _number(value: Any, *, whole: bool) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    try:
        return int(value)
    except (TypeError, ValueError):
        pass
    if whole:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
