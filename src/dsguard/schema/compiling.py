"""compile beside ZeRO, offload and parallelism: what ``engine.compile()`` makes of it.

Source: ``compile`` and ``get_deepspeed_compile_backend`` in deepspeed/runtime/engine.py, init_z3 in
deepspeed/compile/init_z3.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dsguard.schema import wording
from dsguard.schema.problem import Place, Problem
from dsguard.schema.whole import Whole, offloads

if TYPE_CHECKING:
    from dsguard.schema.compile import Compile
    from dsguard.schema.zero import ZeroOptimization

_COMPILE = "engine.compile()"


def compiles(config: Whole) -> Iterator[Problem]:
    """What stops ``engine.compile()``, or makes it plain ``torch.compile``."""
    block = config.compile
    if block is None:
        return
    zero = config.zero
    if zero is None:
        return
    if block.autoep_non_moe:
        yield from _around_experts(config, block, zero)
    elif block.deepcompile:
        yield from _deepcompile(config, block, zero)


def _deepcompile(config: Whole, block: Compile, zero: ZeroOptimization) -> Iterator[Problem]:
    passes, at = block.passes or [], config.place("compile.passes")
    others = [name for name in ("autosp", "z1", "z3") if name in passes]
    if "autotp" in passes and others:
        yield wording.failing(
            at, passes, None, f'{at.dotted} has "autotp" together with "{others[0]}"', _COMPILE
        )
    elif "autosp" in passes:
        if zero.stage > 1:
            yield _plain(config, f"the pass autosp works with stage 0 and 1 only, not {zero.stage}")
    elif "autotp" in passes:
        yield from _autotp(config)
    elif zero.stage == 0 or (zero.stage == 2 and not config.is_since("0.17.1")):
        yield from _without_zero(config, zero)
    elif zero.stage == 3 and config.is_since("0.19.4"):
        yield from _offload(config, block, zero)


def _plain(config: Whole, why: str, other: Place | None = None) -> Problem:
    return wording.unused(
        config.place("compile.deepcompile"),
        True,
        other or config.stage_at,
        f"compile.deepcompile has no effect: {why}, so DeepSpeed goes on with plain torch.compile",
    )


def _autotp(config: Whole) -> Iterator[Problem]:
    if config.tensor_parallel_size <= 1:
        yield _plain(
            config,
            "the pass autotp needs tensor_parallel.autotp_size above 1",
            config.other("tensor_parallel.autotp_size"),
        )
    elif config.is_on("tensor_parallel.tp_overlap_comm"):
        at = config.place("tensor_parallel.tp_overlap_comm")
        yield wording.failing(
            at,
            True,
            config.place("compile.passes"),
            f"{at.dotted} is true, which the compile pass autotp does not support",
            _COMPILE,
        )


def _without_zero(config: Whole, zero: ZeroOptimization) -> Iterator[Problem]:
    if config.is_since("0.17.1"):
        yield _plain(config, "DeepCompile works with ZeRO only and the stage is 0")
        return
    at = config.place("compile.deepcompile")
    yield wording.failing(
        at,
        True,
        config.stage_at,
        f"{at.dotted} is true with ZeRO stage {int(zero.stage)}, and DeepCompile works with stage "
        "1 and 3 only",
        _COMPILE,
    )


def _offload(config: Whole, block: Compile, zero: ZeroOptimization) -> Iterator[Problem]:
    """Two ways of moving the same memory.

    The engine turns ``offload_parameters`` on by itself where ZeRO offloads both to the CPU.
    """
    states, activation = (
        config.place(f"compile.{name}") for name in ("offload_opt_states", "offload_activation")
    )
    parameters = block.offload_parameters or (
        zero.offload_optimizer is not None
        and zero.offload_param is not None
        and zero.offload_optimizer.device == zero.offload_param.device == "cpu"
    )
    if parameters and config.is_on_or_off("compile.offload_parameters") is False:
        yield wording.unused(
            config.place("compile.offload_parameters"),
            False,
            config.other("zero_optimization.offload_param"),
            "compile.offload_parameters is false, but offloading both parameters and optimizer to "
            "the CPU turns it on",
        )
    if block.offload_opt_states and offloads(zero.offload_optimizer):
        yield wording.failing(
            states,
            True,
            config.place("zero_optimization.offload_optimizer"),
            f"{states.dotted} is true, and zero_optimization.offload_optimizer moves the same "
            "states",
            _COMPILE,
        )
    elif block.offload_opt_states and parameters:
        yield wording.failing(
            states,
            True,
            config.other("compile.offload_parameters"),
            f"{states.dotted} and compile.offload_parameters are both on",
            _COMPILE,
        )
    if not config.is_since("0.19.6"):
        return
    if block.offload_activation and (parameters or block.offload_opt_states):
        other = "offload_opt_states" if block.offload_opt_states else "offload_parameters"
        yield wording.failing(
            activation,
            True,
            config.other(f"compile.{other}"),
            f"{activation.dotted} and compile.{other} are both on",
            _COMPILE,
        )


def _around_experts(config: Whole, block: Compile, zero: ZeroOptimization) -> Iterator[Problem]:
    """``autoep_non_moe`` is plain torch.compile around AutoEP's layers, and knows little else."""
    at = config.place("compile.autoep_non_moe")
    clashes: list[tuple[bool, str, str]] = [
        (block.deepcompile, "compile.deepcompile", "DeepCompile"),
        (
            config.written("expert_parallel.comm_backend") == "deepep",
            "expert_parallel.comm_backend",
            'expert_parallel.comm_backend "deepep"',
        ),
        (
            config.tensor_parallel_size > 1,
            "tensor_parallel.autotp_size",
            "tensor_parallel.autotp_size above 1",
        ),
        (zero.stage == 3, "zero_optimization.stage", "ZeRO stage 3"),
        (
            offloads(zero.offload_optimizer),
            "zero_optimization.offload_optimizer",
            "optimizer offload",
        ),
        (offloads(zero.offload_param), "zero_optimization.offload_param", "parameter offload"),
    ]
    for clash, dotted, what in clashes:
        if clash:
            yield wording.failing(
                at, True, config.other(dotted), f"{at.dotted} does not work with {what}", _COMPILE
            )
            return
