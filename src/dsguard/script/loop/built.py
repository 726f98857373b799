"""Configs that Accelerate's plugin and Lightning's strategy build of what they are given.

Sources: accelerate/utils/dataclasses.py (``DeepSpeedPlugin.__post_init__``) and
lightning/fabric/strategies/deepspeed.py (``_create_default_config``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dsguard.script.declaration import Constant, FromArgument, Unreadable
from dsguard.script.loop.description import DictEntry, DictLiteral, DictValue

if TYPE_CHECKING:
    import ast

    from dsguard.script.module import LocalModule

Passed = Mapping[str, "tuple[Any, ast.expr]"]
"""What a call is given by name, each with its expression."""

_AUTO = Constant("auto")
_REGISTERED = {
    "deepspeed": (2, False, False),
    "deepspeed_stage_1": (1, False, False),
    "deepspeed_stage_2": (2, False, False),
    "deepspeed_stage_2_offload": (2, True, False),
    "deepspeed_stage_3": (3, False, False),
    "deepspeed_stage_3_offload": (3, True, True),
}
"""Names that Lightning's Trainer takes for a strategy: stage, and which offloads are on."""


class _Builder:
    """Entries of a config that stand where their argument does, or at the call."""

    def __init__(self, passed: Passed, call: ast.expr, module: LocalModule) -> None:
        self._passed = passed
        self._call = call
        self._module = module

    def get(self, name: str, default: Constant | Unreadable) -> tuple[DictValue, ast.expr]:
        """The value of a parameter and its place; None counts as left out."""
        value, node = self._passed.get(name, (default, self._call))
        if value == Constant(None):
            value = default
        if not isinstance(value, (Constant, FromArgument)):
            value = Unreadable("it is only known when the script runs")
        return value, node

    def entry(self, key: str, value: DictValue, node: ast.expr) -> DictEntry:
        """One entry with the text of the expression that it comes from."""
        where = self._module.locate(node)
        return DictEntry(key, where, value, where, self._module.places.excerpt(node))

    def of(self, key: str, name: str, default: Constant | Unreadable) -> DictEntry:
        """The entry that a parameter becomes."""
        return self.entry(key, *self.get(name, default))

    def block(self, *entries: DictEntry) -> DictLiteral:
        """Entries as an object."""
        return DictLiteral(self._module.locate(self._call), entries)


def plugin_config(passed: Passed, call: ast.expr, module: LocalModule) -> DictLiteral:
    """What ``DeepSpeedPlugin(zero_stage=…)`` hands to DeepSpeed where it is given no config.

    Parameters that are left out come from the environment that ``accelerate launch`` makes.
    """
    make = _Builder(passed, call, module)
    zero = [make.of("stage", "zero_stage", Unreadable("accelerate launch decides it"))]
    for name in ("offload_optimizer", "offload_param"):
        if f"{name}_device" in passed:
            device = make.of("device", f"{name}_device", Constant("none"))
            zero.append(make.entry(name, make.block(device), call))
    return make.block(
        make.entry("train_batch_size", _AUTO, call),
        make.entry("train_micro_batch_size_per_gpu", _AUTO, call),
        make.of("gradient_accumulation_steps", "gradient_accumulation_steps", _AUTO),
        make.of("gradient_clipping", "gradient_clipping", _AUTO),
        make.entry("zero_optimization", make.block(*zero), call),
    )


def strategy_config(passed: Passed, call: ast.expr, module: LocalModule) -> DictLiteral:
    """What ``DeepSpeedStrategy(stage=…)`` hands to DeepSpeed where it is given no config."""
    make = _Builder(passed, call, module)
    zero = [make.of("stage", "stage", Constant(2))]
    for name, flag, device in (
        ("offload_optimizer", "offload_optimizer", "offload_optimizer_device"),
        ("offload_param", "offload_parameters", "offload_params_device"),
    ):
        value, _ = make.get(flag, Constant(False))
        if value == Constant(True):
            block = make.block(make.of("device", device, Constant("cpu")))
            zero.append(make.entry(name, block, call))
    return make.block(
        make.entry("zero_allow_untested_optimizer", Constant(True), call),
        make.entry("zero_optimization", make.block(*zero), call),
    )


def registered_config(name: str, call: ast.expr, module: LocalModule) -> DictLiteral | None:
    """What ``Trainer(strategy="deepspeed_stage_2")`` stands for; None for other strategies."""
    if name not in _REGISTERED:
        return None
    stage, *offloads = _REGISTERED[name]
    flags = dict(zip(("offload_optimizer", "offload_parameters"), offloads, strict=True))
    passed = {"stage": (Constant(stage), call)}
    passed |= {flag: (Constant(on), call) for flag, on in flags.items()}
    return strategy_config(passed, call, module)
