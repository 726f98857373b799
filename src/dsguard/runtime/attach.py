"""``guard(engine)``: from an engine and an expectation to an attached guard."""

from __future__ import annotations

import difflib
import os
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dsguard.runtime.contracts import ContractGiven, contract_of_run
from dsguard.runtime.engines import data_parallel, deepspeed
from dsguard.runtime.place import here
from dsguard.runtime.plan import Plan
from dsguard.runtime.reporting import Notebook, OnViolation
from dsguard.runtime.rule import GuardRule, all_guard_rules
from dsguard.runtime.sinks import Record, sinks_of
from dsguard.runtime.unwrap import unwrapped

if TYPE_CHECKING:
    from dsguard.runtime.expectation import Expected
    from dsguard.runtime.session import Guard


class _Kind(Protocol):
    """A kind of engine: a module of :mod:`dsguard.runtime.engines`."""

    def recognises(self, engine: Any, /) -> bool: ...

    def attach(self, engine: Any, plan: Plan, /) -> Guard: ...


_KINDS: tuple[_Kind, ...] = (deepspeed, data_parallel)

_guards: weakref.WeakKeyDictionary[Any, weakref.ReferenceType[Guard]] = weakref.WeakKeyDictionary()


def guard(
    engine: Any,
    *,
    expect: Expected = None,
    contract: ContractGiven = None,
    on_violation: OnViolation = "warn",
    checks: Literal["default"] | Iterable[str] = "default",
    ranks: Literal["attach", "off"] = "attach",
    every: int | None = None,
    balance_every: int | None = None,
    record: Record = None,
    optimizer: Any = None,
    dataloader: Any = None,
) -> Guard:
    """Hold a running engine to what was asked, from now on.

    Call it once, on every rank, after ``deepspeed.initialize``, or after the model was wrapped
    in DDP or FSDP. A second call on the same engine replaces the first guard.

    Args:
        engine: what ``deepspeed.initialize`` returned first (a pipeline engine too), or a model
            under DDP, FSDP or ``fully_shard``, or the ``Accelerator`` that prepared it; in a run
            of one process also a plain module, so that a script need not ask. Pass what the loop
            calls.
        expect: a mapping of ``gradient_accumulation_steps``, ``train_batch_size``,
            ``micro_batch_size`` (samples), ``gradient_clipping`` (norm), ``zero_stage``,
            ``precision`` (``fp32``, ``fp16``, ``bf16``), ``data_parallel_size``, ``world_size``
            (ranks), or the path of a ds_config. Absent: what the contract says, else what the
            engine's own config says. A loop without DeepSpeed has no such config: without an
            expectation or contract only its gradient synchronisation is judged.
        contract: a run contract or its path. Absent: the one that ``dsguard run`` has left for
            this launch, if any. What ``expect`` says wins over it.
        on_violation: ``warn`` logs (logger ``dsguard.guard``) once per kind and counts after
            that; ``raise`` raises :class:`GuardViolation` for errors and logs the rest;
            ``record`` only keeps findings.
        checks: ``default``, or the rules to ask, by code or slug; ``-slug`` leaves one out.
        ranks: ``attach`` compares the ranks once, over the store of the rendezvous, at most 10
            seconds; ``off`` asks nobody.
        every: compare the counts of all ranks in a collective after every so many optimizer
            steps. Give every rank the same number.
        balance_every: compare the tokens of all ranks in a collective after every so many
            optimizer steps, and say what share of the time they wait for each other and how much
            is padding; counted locally, without waiting for the device. Give every rank the same
            number.
        record: where one record per optimizer step goes: a path (JSON lines, the other ranks
            beside it), a function that takes each as a dict, ``"monitor"`` (DeepSpeed's monitor
            if it is enabled, else the active wandb or MLflow run), a TensorBoard
            ``SummaryWriter``, or a list of these.
        optimizer: what steps the model, where ``engine`` is a module; DeepSpeed has its own.
        dataloader: the script's own loader, whose length is compared between the ranks and with
            the accumulation.

    Raises:
        TypeError: ``engine`` is nothing that a guard can be put on, or a module came without
            ``optimizer``.
        ValueError: an argument that makes no sense, or a config that cannot be read.
        GuardViolation: ``on_violation`` is ``raise`` and the engine differs already.
    """
    if on_violation not in ("warn", "raise", "record"):
        raise ValueError(f"on_violation is warn, raise or record, not {on_violation!r}")
    if ranks not in ("attach", "off"):
        raise ValueError(f"ranks is attach or off, not {ranks!r}")
    for name, steps in (("every", every), ("balance_every", balance_every)):
        if steps is not None and (
            isinstance(steps, bool) or not isinstance(steps, int) or steps < 1
        ):
            raise ValueError(f"{name} is a number of optimizer steps, not {steps!r}")
    engine, optimizer = unwrapped(engine, optimizer)
    plan = Plan(
        expect=expect,
        contract=contract_of_run(contract, os.environ),
        rules=_chosen(checks),
        notebook=Notebook(on_violation),
        compare_ranks=ranks == "attach",
        every=every,
        balance_every=balance_every,
        sinks=sinks_of(record),
        optimizer=optimizer,
        dataloader=dataloader,
        attached_at=here(),
    )
    kind = next((kind for kind in _KINDS if kind.recognises(engine)), None)
    if kind is None:
        raise TypeError(
            f"dsguard cannot guard a {type(engine).__name__}: pass what deepspeed.initialize "
            "returned first, after it has returned, or a model under DDP or FSDP"
        )
    before = _guards.get(engine)
    earlier = before() if before is not None else None
    if earlier is not None:
        earlier.replace()
    attached = kind.attach(engine, plan)
    _guards[engine] = weakref.ref(attached)
    return attached


def _chosen(checks: str | Iterable[str]) -> tuple[GuardRule[Any], ...]:
    rules = all_guard_rules()
    if checks == "default":
        return rules
    if isinstance(checks, (str, Mapping)):
        raise ValueError(f"checks is 'default' or a list of rules, not {checks!r}")
    known = {name: rule for rule in rules for name in (rule.meta.code, rule.meta.slug)}
    chosen: set[str] = set()
    left_out: set[str] = set()
    for given in checks:
        name = str(given).removeprefix("-")
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(f"the guard has no rule {name!r}{hint}")
        (left_out if name != given else chosen).add(known[name].meta.code)
    wanted = chosen or {rule.meta.code for rule in rules}
    return tuple(rule for rule in rules if rule.meta.code in wanted - left_out)
