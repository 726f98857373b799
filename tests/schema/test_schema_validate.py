from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from dsguard.model.finding import Consequence
from dsguard.schema.history import NEWEST_KNOWN, OLDEST_KNOWN
from dsguard.schema.keys import all_keys
from dsguard.schema.problem import Problem, ProblemKind
from dsguard.schema.validate import validate
from tests.schema.configs import ODD_VALUES, WRITTEN, whole_config

NAMES = sorted({info.dotted.rpartition(".")[2] for info in all_keys(None)})
VALUES = st.recursive(
    st.sampled_from([v for v in ODD_VALUES if not isinstance(v, dict | list)]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def only(config: dict[str, object], target: Version = NEWEST_KNOWN) -> Problem:
    (problem,) = validate(config, target)
    return problem


@settings(max_examples=300)
@given(
    st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), VALUES, max_size=5),
    st.sampled_from(["0.9.0", "0.12.6", "0.14.5", "0.17.0", "0.18.9", "0.19.8", "1.0"]),
)
def test_any_object_is_judged_without_an_error(config: dict[str, object], release: str) -> None:
    for problem in validate(config, Version(release)):
        assert not problem.message.endswith(".")
        assert "\n" not in problem.message
        place: object = config
        for token in problem.pointer.split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            place = place[int(token)] if isinstance(place, list) else place[token]  # type: ignore[index]


def test_a_key_with_a_dot_is_no_path() -> None:
    problem = only({"zero_optimization.mics_shard_size": 2})
    assert (problem.kind, problem.consequence) == (ProblemKind.UNKNOWN_KEY, Consequence.IGNORED)
    assert problem.message.startswith('"zero_optimization.mics_shard_size" is not a key')


def test_deep_nesting_is_judged_without_an_error() -> None:
    deep: object = "auto"
    for _ in range(5000):
        deep = [deep]
    config = {
        "optimizer": {"type": "Adam", "params": {"lr": deep, "other": deep}},
        "fp16": {"enabled": deep, "unknown": deep},
        "unknown": deep,
    }
    assert any(p.kind is ProblemKind.MISTYPED_VALUE for p in validate(config, NEWEST_KNOWN))


def test_problems_come_in_the_order_of_the_config() -> None:
    config = {
        "zero_optimization": {"stage": 9, "offload_param": {"device": "x"}, "colour": 1},
        "colour": 1,
        "bf16": {"enabled": True},
        "amp": {},
        "fp16": {"enabled": True},
    }
    assert [p.pointer for p in validate(config, NEWEST_KNOWN)] == [
        "/zero_optimization/stage",
        "/zero_optimization/offload_param/device",
        "/zero_optimization/colour",
        "/colour",
        "/bf16/enabled",
        "/amp",
    ]


def test_the_pointer_uses_the_spelling_of_the_config() -> None:
    short = {"zero_optimization": {"prefetch_bucket_size": -1}}
    long = {"zero_optimization": {"stage3_prefetch_bucket_size": -1}}
    assert only(short).pointer == "/zero_optimization/prefetch_bucket_size"
    assert only(long).pointer == "/zero_optimization/stage3_prefetch_bucket_size"


@pytest.mark.parametrize(
    ("config", "suggestions", "belongs"),
    [
        ({"Train_Batch_Size": 1}, ("train_batch_size",), ()),
        ({"train-batch-size": 1}, ("train_batch_size",), ()),
        ({"gradient_acumulation_steps": 1}, ("gradient_accumulation_steps",), ()),
        ({"zero_optimization": {"overlap_com": True}}, ("overlap_comm",), ()),
        ({"stage": 3}, ("stage",), ("zero_optimization",)),
        ({"bf16": {"loss_scale": 0}}, ("loss_scale",), ("fp16",)),
        ({"optimizer": {"type": "Adam", "lr": 1}}, ("lr",), ("optimizer.params",)),
        ({"cpu_offload": True}, ("cpu_offload",), ("zero_optimization",)),
        (
            {"stage3_gather_16bit_weights_on_model_save": True},
            ("stage3_gather_16bit_weights_on_model_save",),
            ("zero_optimization",),
        ),
        (
            {"stage3_gather_16bit_weight_on_model_save": True},
            ("stage3_gather_16bit_weights_on_model_save",),
            ("zero_optimization",),
        ),
        (
            {"zero_optimization": {"pin_memory": True}},
            ("pin_memory",),
            ("zero_optimization.offload_optimizer", "zero_optimization.offload_param"),
        ),
        ({"enabled": True}, (), ()),
        ({"model_name": "x"}, (), ()),
    ],
)
def test_what_may_have_been_meant(
    config: dict[str, object], suggestions: tuple[str, ...], belongs: tuple[str, ...]
) -> None:
    problem = only(config)
    assert problem.suggestions[:1] == suggestions
    assert set(belongs) <= set(problem.belongs)
    assert bool(belongs) == bool(problem.belongs)
    misplaced = bool(belongs) and suggestions[0] == problem.pointer.rpartition("/")[2]
    assert problem.kind is (ProblemKind.MISPLACED_KEY if misplaced else ProblemKind.UNKNOWN_KEY)


def test_a_conflict_names_the_other_key() -> None:
    config = {"zero_optimization": {"offload_optimizer": {}, "cpu_offload": True}}
    conflict = next(
        p for p in validate(config, NEWEST_KNOWN) if p.kind is ProblemKind.CONFLICTING_KEYS
    )
    assert conflict.pointer == "/zero_optimization/cpu_offload"
    assert conflict.other == "/zero_optimization/offload_optimizer"
    assert conflict.consequence is Consequence.REFUSED
    assert conflict.replacement == "zero_optimization.offload_optimizer"


def test_a_message_says_what_was_found_and_what_happens() -> None:
    assert only({"zero_optimization": {"reduce_bucket_size": 15099494.4}}).message == (
        "zero_optimization.reduce_bucket_size is 15099494.4 but must be a whole number above 0; "
        "DeepSpeed stops when it reads the config"
    )
    assert only({"zero_optimization": {"stage": "auto"}}).message == (
        'zero_optimization.stage is "auto"; DeepSpeed drops it and uses the default, 0'
    )


@pytest.mark.parametrize(
    ("config", "target", "expected"),
    [
        ({"torch_autocast": {"enabled": True}}, "0.17.1", ("too-new-key", "ignored")),
        ({"torch_autocast": {"enabled": True}}, "0.17.2", None),
        ({"zero_optimization": {"zenflow": {"x": 1}}}, "0.17.4", ("too-new-key", "refused")),
        ({"bf16": {"check_grad_overflow": True}}, "0.17.0", ("too-new-key", "ignored")),
        ({"fp16": {"opt_level": "O2"}}, "0.17.0", ("unknown-key", "ignored")),
        ({"fp16": {"opt_level": "O2"}}, "0.17.1", ("unknown-key", "refused")),
        ({"amp": {"enabled": False}}, "0.19.7", None),
        ({"amp": {"enabled": False}}, "0.19.8", ("removed-key", "refused")),
        ({"zero_optimization": {"mics_shard_size": 2}}, "0.19.6", None),
        ({"zero_optimization": {"mics_shard_size": 2}}, "0.19.7", ("removed-key", "refused")),
        ({"aio": {"thread_count": 2}}, "0.16.3", None),
        ({"aio": {"thread_count": 2}}, "0.16.4", ("removed-key", "ignored")),
        ({"gradient_clipping": 1.0}, "0.1", None),
    ],
)
def test_keys_are_judged_for_the_target(
    config: dict[str, object], target: str, expected: tuple[str, str] | None
) -> None:
    found = [(p.kind.value, p.consequence.value) for p in validate(config, Version(target))]
    assert found == ([expected] if expected else [])


def test_the_oldest_release_knows_the_keys_without_a_first_release() -> None:
    old = {i.dotted for i in all_keys() if i.since == OLDEST_KNOWN and "." not in i.dotted}
    config = {key: value for key, value in whole_config().items() if key in old}
    assert len(config) > 25
    found = validate({key: {} for key in config}, OLDEST_KNOWN)
    assert not [p for p in found if p.kind in (ProblemKind.TOO_NEW_KEY, ProblemKind.UNKNOWN_KEY)]


def test_configs_that_deepspeed_accepts_are_accepted() -> None:
    for config in (whole_config(), *WRITTEN):
        refused = [
            p.message
            for p in validate(config, NEWEST_KNOWN)
            if p.consequence is Consequence.REFUSED
        ]
        assert refused == []
