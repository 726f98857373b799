"""The optimizer, scheduler and precision rules put before the real ``deepspeed.initialize``.

What is said to fail late fails there with the error that the message names, and what is said to
be fine is accepted and makes a step. What changes silently is read off the engine. A CPU has
no fp16 and no kernels of Lamb and of quantized weights; fixtures that need them are left out.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from packaging.version import Version

from dsguard.api import check_text
from dsguard.model.finding import Consequence
from dsguard.rules import all_rules
from dsguard.schema.optimizers import (
    CONSTRUCTORS,
    DEEPSPEED_OPTIMIZERS,
    MUON_READS,
    torch_optimizers,
)
from dsguard.schema.schedulers import DEEPSPEED_SCHEDULERS, TORCH_SCHEDULERS
from tests.contract.rule_cases import TARGET, RuleCase, rule_cases
from tests.engine import Verdict, initialize_all

pytestmark = pytest.mark.deepspeed

RULES = {
    rule.meta.slug: rule.meta
    for rule in all_rules()
    if rule.meta.family in ("precision", "optimizer") and rule.meta.slug != "fp16-with-bf16"
}
ADAMW = {"type": "AdamW", "params": {"lr": 2e-5}}


def read(case: RuleCase) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(case.config.read_text(encoding="utf-8"))
    return config


def runs_on_cpu(case: RuleCase) -> bool:
    """Whether DeepSpeed gets as far as what the rule is about."""
    config = read(case)
    if config.get("fp16", {}).get("enabled"):
        return False
    refused_before_it_is_built = case.bad and case.slug in (
        "static-loss-scale-with-lamb",
        "autocast-with-quantized-weights",
    )
    lamb = str(config.get("optimizer", {}).get("type")).lower() == "lamb"
    quantized = config.get("zero_optimization", {}).get("zero_quantized_weights")
    return refused_before_it_is_built or not (lamb or quantized)


def is_judged(case: RuleCase) -> bool:
    plain = case.option("--front-end") == "plain" and case.option("--target") in (None, TARGET)
    return case.slug in RULES and plain and "${" not in case.config.read_text(encoding="utf-8")


CASES = [case for case in rule_cases() if is_judged(case) and runs_on_cpu(case)]


def brings_its_own(case: RuleCase) -> bool:
    """Whether only a script that passes an optimizer gets anywhere with the config."""
    return read(case).get("optimizer", {}).get("type") is None


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    for client in (None, "sgd"):
        cases = [case for case in CASES if brings_its_own(case) == (client is not None)]
        made = initialize_all([read(case) for case in cases], client=client, step=True)
        found |= {case.id: verdict for case, verdict in zip(cases, made, strict=True)}
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_deepspeed_agrees(case: RuleCase, verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts[case.id]
    oracle = RULES[case.slug].oracle or ""
    raises = oracle.startswith("deepspeed.initialize raises ")
    if not case.bad or not raises or case.config.stem == "muon-drops-it":
        assert verdict.ok, verdict.complaint
        return
    error = oracle.removeprefix("deepspeed.initialize raises ").partition(":")[0]
    assert verdict.failed_in == "initialize"
    assert verdict.error == error, verdict.complaint
    assert f"stops with {error}" in case.expected.read_text(encoding="utf-8")


def test_every_rule_has_a_fixture_that_is_judged() -> None:
    assert {case.slug for case in CASES if case.bad} == set(RULES)


def config(**blocks: Any) -> dict[str, Any]:
    return {"train_micro_batch_size_per_gpu": 2, "optimizer": ADAMW, **blocks}


def test_warmup_overrides_the_learning_rate() -> None:
    """The rates are those of the scheduler, and its shape is log where the name is unknown."""

    def scheduled(kind: str, **params: Any) -> dict[str, Any]:
        return config(scheduler={"type": kind, "params": params})

    made = initialize_all(
        [
            scheduled("WarmupLR", warmup_max_lr=1e-4),
            scheduled("WarmupLR"),
            scheduled("WarmupDecayLR", total_num_steps=1000, warmup_type="Linear"),
        ],
        ask=("lr_scheduler.max_lrs", "lr_scheduler.warmup_type"),
    )
    assert [tuple(verdict.values.values()) for verdict in made] == [
        ("[0.0001]", "log"),
        ("[2e-05]", "log"),
        ("[0.001]", "log"),
    ]
    assert [verdict.learning_rates for verdict in made] == [(0.0,)] * 3


def test_one_cycle_replaces_the_betas() -> None:
    cycle = {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-4}}
    adam = {"type": "Adam", "params": {"lr": 2e-5, "betas": [0.9, 0.999]}}
    (verdict,) = initialize_all(
        [config(optimizer=adam, scheduler=cycle)], ask=("lr_scheduler.min_moms",)
    )
    assert verdict.values == {"lr_scheduler.min_moms": "[(0.8, 0.99)]"}


def test_adamw_stays_adamw() -> None:
    made = initialize_all(
        [
            config(optimizer={"type": kind, "params": {"lr": 2e-5, "adam_w_mode": False}})
            for kind in ("AdamW", "Adam")
        ],
        ask=("basic_optimizer.adam_w_mode",),
    )
    assert [verdict.values["basic_optimizer.adam_w_mode"] for verdict in made] == [1, 0]


def test_silent_types() -> None:
    """fp16 gradients, an autocast without a type, and BF16_Optimizer in place of ZeRO's."""
    bf16 = {"enabled": True}
    communication, accumulation, autocast, sharded = initialize_all(
        [
            config(bf16=bf16, communication_data_type="fp16", zero_optimization={"stage": 2}),
            config(
                bf16=bf16,
                data_types={"grad_accum_dtype": "fp16"},
                zero_optimization={"stage": 1},
            ),
            config(torch_autocast={"enabled": True}, zero_optimization={"stage": 2}),
            config(
                bf16=bf16,
                data_types={"grad_accum_dtype": "fp32"},
                zero_optimization={"stage": 1, "overlap_comm": True},
            ),
        ],
        ask=("communication_data_type", "get_data_types", "torch_autocast_dtype"),
    )
    assert communication.values["communication_data_type"] == "torch.float16"
    assert accumulation.values["get_data_types"] == "(torch.bfloat16, torch.float16)"
    assert autocast.values["torch_autocast_dtype"] is None
    assert (accumulation.optimizer, sharded.optimizer) == (
        "DeepSpeedZeroOptimizer",
        "BF16_Optimizer",
    )


def test_a_block_without_type_is_ignored(verdicts: dict[str, Verdict]) -> None:
    optimizer = verdicts["optimizer-without-type/bad/params-alone"]
    assert optimizer.basic_optimizer == "SGD"
    assert verdicts["scheduler-without-type/bad/params-alone"].scheduler is None
    assert verdicts["scheduler-without-type/good/type-given"].scheduler == "WarmupLR"


@pytest.mark.parametrize("name", ["WarmupDecayLR", "WarmupCosineLR"])
def test_a_warmup_longer_than_the_total_never_arrives(name: str) -> None:
    import torch
    from deepspeed.runtime import lr_schedules

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.001)
    scheduler = getattr(lr_schedules, name)(
        optimizer, total_num_steps=50, warmup_num_steps=100, warmup_type="linear"
    )
    rates = []
    for _ in range(50):
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(0.001 * 49 / 100)


OPTIMIZERS = ("Adam", "adamw", "AdamW", "ADAM", "SGD", "Adagrad", "RMSprop", "NAdam", "sgd")
OPTIMIZER_PARAMS: dict[str, tuple[Any, ...]] = {
    "weight_decay": (0.01,),
    "betas": ([0.9, 0.99],),
    "amsgrad": (True, False),
    "adam_w_mode": (True, False),
    "torch_adam": (True, False),
    "momentum": (0.9,),
    "foreach": (True,),
    "bias_correction": (True,),
    "set_grad_none": (True,),
    "max_grad_norm": (1.0,),
    "learning_rate": (2e-5,),
}
SCHEDULERS = {
    "WarmupLR": ("warmup_num_steps", "warmup_max_lr"),
    "WarmupDecayLR": ("total_num_steps", "warmup_num_steps"),
    "WarmupCosineLR": ("total_num_steps", "cos_min_ratio"),
    "OneCycle": ("cycle_min_lr", "cycle_max_lr", "cycle_first_step_size"),
    "LRRangeTest": ("lr_range_test_step_size",),
    "StepLR": ("step_size",),
    "warmuplr": ("warmup_num_steps",),
}
SCHEDULER_PARAMS: dict[str, tuple[Any, ...]] = {
    "warmup_num_steps": (10, 0, 1, 2.5),
    "warmup_max_lr": (2e-5,),
    "total_num_steps": (100, 5),
    "cos_min_ratio": (0.1,),
    "cycle_min_lr": (1e-5,),
    "cycle_max_lr": (1e-4,),
    "cycle_first_step_size": (10, 0, 2.5),
    "lr_range_test_step_size": (10, 0),
    "step_size": (10,),
}


def random_config(random: Random) -> dict[str, Any]:
    """A config of the blocks that these rules judge, right or wrong in a few places."""

    def some(values: dict[str, tuple[Any, ...]], names: Iterable[str]) -> dict[str, Any]:
        return {name: random.choice(values[name]) for name in names}

    extra = random.sample(list(OPTIMIZER_PARAMS), random.choice((0, 0, 0, 1)))
    optimizer = {
        "type": random.choice(OPTIMIZERS),
        "params": {"lr": 2e-5, **some(OPTIMIZER_PARAMS, extra)},
    }
    made = config(optimizer=optimizer, zero_allow_untested_optimizer=True)
    if random.random() < 0.5:
        kind, needed = random.choice(list(SCHEDULERS.items()))
        names = [name for name in needed if random.random() < 0.95]
        names += random.sample(list(SCHEDULER_PARAMS), random.choice((0, 0, 0, 1)))
        made["scheduler"] = {"type": kind, "params": some(SCHEDULER_PARAMS, names)}
        if random.random() < 0.1:
            del made["scheduler"]["params"]
    stage = random.choice((0, 1, 2, 3))
    made["zero_optimization"] = {"stage": stage}
    if stage and random.random() < 0.4:
        made["zero_optimization"]["offload_optimizer"] = {"device": "cpu"}
    made["bf16"] = {"enabled": random.random() < 0.5}
    if stage and random.random() < 0.2:
        made["bf16"]["bf16_master_weights_and_grads"] = True
        made["bf16"]["bf16_optimizer_states"] = random.random() < 0.5
    if random.random() < 0.2:
        key = random.choice(("grad_accum_dtype", "param_dtype"))
        made["data_types"] = {key: random.choice(("fp16", "bf16", "fp32"))}
    return made


def test_random_blocks_fail_exactly_where_dsguard_says_so() -> None:
    random = Random(0)
    configs = [random_config(random) for _ in range(120)]
    judged = []
    for made, verdict in zip(configs, initialize_all(configs), strict=True):
        report = check_text(json.dumps(made), front_end="plain", world_size=1, target=TARGET)
        fails = [f.rule for _, f in report.findings if f.consequence is Consequence.LATE]
        judged.append(verdict.ok)
        assert bool(fails) != verdict.ok, (made, fails, verdict.complaint)
    assert 30 < sum(judged) < 90, "the configs are not a mixture of right and wrong"


def arguments(constructor: Any) -> set[str]:
    """What a constructor takes besides the parameters to train or the optimizer."""
    return set(list(inspect.signature(constructor).parameters)[1:])


def exists(name: str) -> bool:
    return DEEPSPEED_OPTIMIZERS[name].exists(Version(TARGET))


def test_the_names_are_those_of_the_installed_release() -> None:
    import torch
    from deepspeed.runtime import lr_schedules
    from deepspeed.runtime.config import DEEPSPEED_OPTIMIZERS as NAMES

    assert {name for name in DEEPSPEED_OPTIMIZERS if exists(name)} == set(NAMES)
    assert set(DEEPSPEED_SCHEDULERS) == set(lr_schedules.VALID_LR_SCHEDULES)
    optimizers = {
        name
        for name, found in inspect.getmembers(torch.optim, inspect.isclass)
        if issubclass(found, torch.optim.Optimizer) and found is not torch.optim.Optimizer
    }
    assert optimizers <= set(torch_optimizers())
    base = torch.optim.lr_scheduler.LRScheduler
    schedulers = {
        name
        for name, found in inspect.getmembers(torch.optim.lr_scheduler, inspect.isclass)
        if issubclass(found, base) and not name.endswith("LRScheduler")
    }
    assert schedulers <= set(TORCH_SCHEDULERS)


def test_the_arguments_are_those_of_the_installed_release() -> None:
    import torch
    from deepspeed.ops.adagrad import DeepSpeedCPUAdagrad
    from deepspeed.ops.adam import DeepSpeedCPUAdam, FusedAdam
    from deepspeed.ops.lamb import FusedLamb
    from deepspeed.ops.lion import DeepSpeedCPULion, FusedLion
    from deepspeed.runtime import lr_schedules

    own = (DeepSpeedCPUAdagrad, DeepSpeedCPUAdam, FusedAdam, FusedLamb, DeepSpeedCPULion, FusedLion)
    for constructor in own:
        assert CONSTRUCTORS[constructor.__name__] == arguments(constructor), constructor
    for name in torch_optimizers():
        # A release of PyTorch may have fewer.
        found = getattr(torch.optim, name, None)
        assert found is None or arguments(found) <= CONSTRUCTORS[f"torch.optim.{name}"], name
    for name, scheduler in DEEPSPEED_SCHEDULERS.items():
        signature = inspect.signature(getattr(lr_schedules, name)).parameters
        required = [n for n, p in signature.items() if p.default is inspect.Parameter.empty]
        assert scheduler.parameters == set(signature) - {"optimizer"}, name
        assert list(scheduler.required) == [n for n in required if n != "optimizer"], name
    for name, scheduler in TORCH_SCHEDULERS.items():
        found = getattr(torch.optim.lr_scheduler, name)
        signature = inspect.signature(found).parameters
        required = [n for n, p in signature.items() if p.default is inspect.Parameter.empty]
        assert arguments(found) <= scheduler.parameters, name
        assert list(scheduler.required) == required[1:], name


def test_muon_reads_what_the_engine_reads() -> None:
    from deepspeed.runtime.engine import DeepSpeedEngine

    halves = {*DeepSpeedEngine._MUON_HALF_KEYS, *DeepSpeedEngine._ADAM_HALF_KEYS}
    assert halves < MUON_READS


def test_the_optimizer_of_the_script_wins() -> None:
    """See optimizer-clash: the block has no effect, and nothing is said."""
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "optimizer": {"type": "SGD", "params": {"lr": 0.5}},
        "zero_optimization": {"stage": 0},
    }
    (verdict,) = initialize_all([config], client="adamw")
    assert verdict.basic_optimizer == "AdamW"
    assert 0.5 not in verdict.learning_rates
    (verdict,) = initialize_all([config])
    assert verdict.basic_optimizer == "SGD"
    assert verdict.learning_rates == (0.5,)
