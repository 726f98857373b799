"""Keys and blocks as single releases have them."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.version import Version

from dsguard.exporting import json_schema
from dsguard.model.finding import Consequence
from dsguard.schema.block import Limit, UnknownKeys
from dsguard.schema.history import NEWEST_KNOWN, OLDEST_KNOWN
from dsguard.schema.keys import KeyInfo, all_keys, find
from dsguard.schema.releases import as_of
from dsguard.schema.shape import fields_of
from dsguard.schema.validate import validate
from dsguard.schema.zero import ZeroOptimization


def key(path: str) -> KeyInfo:
    found = find(path)
    assert found is not None, path
    return found


def zero(**settings: Any) -> dict[str, Any]:
    return {"zero_optimization": settings}


@pytest.mark.parametrize(
    ("path", "release", "default"),
    [
        ("gradient_clipping", "0.19.2", 0.0),
        ("gradient_clipping", "0.19.3", 1.0),
        ("steps_per_print", "0.15.1", 10),
        ("steps_per_print", "0.15.2", None),
        ("zero_optimization.offload_param.pin_memory", "0.19.4", False),
        ("zero_optimization.offload_param.pin_memory", "0.19.5", True),
        ("bf16.immediate_grad_update", "0.16.4", False),
        ("bf16.immediate_grad_update", "0.16.5", True),
        ("bf16.immediate_grad_update", "0.17.1", False),
        ("bf16.check_grad_overflow", "0.19.0", False),
        ("bf16.check_grad_overflow", "99.0", True),
        ("zero_optimization.stage", "0.1", 0),
    ],
)
def test_a_default_belongs_to_a_release(path: str, release: str, default: object) -> None:
    assert key(path).default_in(Version(release)) == default


@pytest.mark.parametrize(
    ("path", "with_it", "without_it"),
    [
        ("torch_autocast", ["0.17.2", "0.19.8"], ["0.9.0", "0.17.1"]),
        ("amp.enabled", ["0.9.0", "0.19.7"], ["0.19.8"]),
        ("compile", ["0.13.2", "0.14.3", "0.16.6"], ["0.13.1", "0.14.4", "0.16.5"]),
        ("compile.backend", ["0.13.2", "0.14.3"], ["0.14.4", "0.16.6"]),
        ("seq_parallel_comm_data_type", ["0.11.2", "0.16.4"], ["0.11.1", "0.16.5"]),
        ("eigenvalue", [], ["0.9.0", "0.19.7", "0.19.8"]),
    ],
)
def test_a_key_exists_in_some_releases(
    path: str, with_it: list[str], without_it: list[str]
) -> None:
    assert all(key(path).exists_in(Version(release)) for release in with_it)
    assert not any(key(path).exists_in(Version(release)) for release in without_it)
    with pytest.raises(LookupError):
        key(path).default_in(Version(without_it[0]))


def test_a_type_belongs_to_a_release() -> None:
    bucket = key("zero_optimization.reduce_bucket_size")
    assert bucket.form_in(Version("0.19.5")).type == "a whole number of at least 0"
    assert bucket.form_in(Version("0.19.6")).type == "a whole number above 0"
    assert [str(form.since) for form in bucket.forms] == ["0.9.0", "0.19.6"]


def test_what_happens_to_unknown_keys_belongs_to_a_release() -> None:
    fp16 = key("fp16")
    assert fp16.unknown_keys is UnknownKeys.REFUSED
    assert fp16.form_in(Version("0.17.0")).unknown_keys is UnknownKeys.IGNORED
    assert fp16.form_in(Version("0.17.1")).unknown_keys is UnknownKeys.REFUSED


def test_the_forms_of_every_key_are_whole() -> None:
    for info in all_keys(None):
        starts = [form.since for form in info.forms]
        assert starts == sorted(set(starts)), info.dotted
        assert starts[0] == info.since, info.dotted
        for release in (OLDEST_KNOWN, Version("0.14.0"), NEWEST_KNOWN):
            form = info.form_in(release)
            assert form.present == (info in all_keys(release)), (info.dotted, release)


def test_all_keys_of_a_release() -> None:
    old = {info.dotted for info in all_keys(Version("0.9.0"))}
    new = {info.dotted for info in all_keys()}
    assert {"amp", "elasticity.version", "aio.thread_count"} <= old - new
    assert {"torch_autocast", "fp16.consecutive_hysteresis"} <= new - old
    assert old | new < {info.dotted for info in all_keys(None)}


def test_a_block_as_a_release_had_it() -> None:
    old = as_of(ZeroOptimization, Version("0.9.5"))
    assert "zenflow" not in fields_of(old)
    assert "mics_shard_size" in fields_of(old)
    assert "mics_shard_size" not in fields_of(as_of(ZeroOptimization, NEWEST_KNOWN))
    assert fields_of(old)["reduce_bucket_size"].shape.bounds == (Limit("ge", 0),)
    assert old.release == Version("0.9.5")
    assert issubclass(old, ZeroOptimization)


@pytest.mark.parametrize("release", ["0.9.0", "0.14.5", "0.15.0", "0.19.8"])
def test_a_whole_release_gives_a_json_schema(release: str) -> None:
    properties = json_schema(Version(release))["properties"]
    assert ("torch_autocast" in properties) == (release == "0.19.8")
    (zero,) = (o for o in properties["zero_optimization"]["anyOf"] if o["type"] == "object")
    assert zero["additionalProperties"] is False
    assert zero["properties"]["stage"]["description"].startswith("What is partitioned")


@pytest.mark.parametrize(
    ("config", "accepted", "refused"),
    [
        # Which values are taken
        (zero(stage="2"), ["0.15.0", "0.19.8"], ["0.9.0", "0.14.5"]),
        (zero(reduce_bucket_size=15099494.4), ["0.9.0", "0.14.5"], ["0.15.0"]),
        (zero(reduce_bucket_size="5.0"), ["0.15.0"], ["0.14.5"]),
        (zero(reduce_bucket_size=0), ["0.19.5"], ["0.19.6"]),
        (zero(offload_param=[]), ["0.14.5"], ["0.15.0"]),
        (zero(zenflow={"topk_ratio": 1.0}), ["0.19.5"], ["0.17.4", "0.19.6"]),
        (zero(zenflow={"update_interval": 0}), ["0.19.5"], ["0.19.6"]),
        (zero(stage=2, offload_optimizer={"ratio": 0.5}), ["0.12.3", "0.14.5"], ["0.15.0"]),
        ({"tensorboard": {"job_name": 5}}, ["0.14.5"], ["0.15.0"]),
        ({"tensorboard": []}, ["0.14.5"], ["0.15.0"]),
        ({"comms_logger": {"debug": "auto"}}, ["0.15.0"], ["0.14.5"]),
        ({"hybrid_engine": {"max_out_tokens": 0}}, ["0.19.6"], ["0.19.7"]),
        ({"compile": {"passes": ["autotp"]}}, ["0.19.6"], ["0.18.9"]),
        ({"communication_data_type": "bfp16"}, ["0.14.0"], ["0.14.1"]),
        ({"communication_data_type": "bf16"}, ["0.14.1"], ["0.14.0"]),
        ({"sequence_parallel_size": "2"}, ["0.15.0", "0.19.2"], ["0.19.3"]),
        # Precision
        ({"fp16": {"enabled": True, "initial_scale_power": "auto"}}, ["0.17.1"], ["0.17.0"]),
        ({"fp16": {"enabled": False, "initial_scale_power": "auto"}}, ["0.17.0"], []),
        ({"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}, ["0.17.1"], ["0.17.0"]),
        ({"fp16": {"enabled": "no"}, "bf16": {"enabled": True}}, ["0.17.1"], ["0.17.0"]),
        ({"fp16": {"enabled": 2}}, ["0.17.0"], ["0.17.1"]),
        ({"fp16": {"min_loss_scale": 0.5}}, ["0.17.0"], ["0.17.1"]),
        ({"fp16": {"loss_scale": -1}}, ["0.18.7"], ["0.18.8"]),
        ({"fp16": {"enabled": True, "loss_scale_window": 0}}, ["0.19.2"], ["0.19.3"]),
        ({"fp16": {"loss_scale_window": True}}, ["0.19.2"], ["0.19.3"]),
        ({"bf16": None}, ["0.17.1"], ["0.17.0"]),
        (
            {"fp16": {"fp16_master_weights_and_grads": True, "enabled": True}} | zero(stage=1),
            ["0.18.3"],
            ["0.18.2", "0.9.0"],
        ),
        ({"fp16": {"fp16_master_weights_and_grads": True}}, ["0.17.0"], ["0.17.1"]),
        # Keys and blocks that came or went
        ({"compile": {"enabled": False}}, ["0.13.2", "0.14.4", "0.16.5"], ["0.16.6"]),
        ({"compile": None}, ["0.13.1", "0.14.4"], ["0.13.2", "0.16.6"]),
        ({"amp": {"enabled": False}}, ["0.19.7"], ["0.19.8"]),
        ({"amp": {}}, [], ["0.19.7"]),
        ({"eigenvalue": {}}, ["0.9.0", "0.19.7"], ["0.19.8"]),
        ({"sparse_attention": {"mode": "dense"}}, ["0.19.6"], ["0.19.7"]),
        ({"sparse_attention": {"mode": "loose"}}, [], ["0.9.0", "0.19.6"]),
        ({"compression_training": {"row_pruning": {}}}, [], ["0.9.0", "0.19.6"]),
        ({"compression_training": {"shared_parameters": {"enabled": 1}}}, ["0.19.3"], ["0.19.2"]),
        ({"elasticity": {"enabled": True}}, [], ["0.9.0"]),
        ({"elasticity": {"enabled": False, "version": 9}}, ["0.9.0"], ["0.19.8"]),
    ],
)
def test_a_value_is_refused_by_some_releases(
    config: dict[str, Any], accepted: list[str], refused: list[str]
) -> None:
    def refuses(release: str) -> bool:
        problems = validate(config, Version(release))
        return any(p.consequence is Consequence.REFUSED for p in problems)

    assert [release for release in accepted if refuses(release)] == []
    assert [release for release in refused if not refuses(release)] == []


def test_switches_were_not_converted_before_0_17_1() -> None:
    (problem,) = validate({"fp16": {"enabled": "False"}}, Version("0.17.0"))
    assert problem.consequence is Consequence.DIFFERS
    assert "takes it for true" in problem.message
    assert validate({"fp16": {"enabled": "False"}}, Version("0.17.1")) == []
    (auto,) = validate({"bf16": {"enabled": "auto"}}, Version("0.17.0"))
    assert auto.consequence is Consequence.DIFFERS


def test_nothing_is_said_of_what_a_switched_off_precision_holds() -> None:
    config = {"fp16": {"enabled": False, "loss_scale": "much"}}
    assert validate(config, Version("0.17.0")) == []


def test_a_key_that_is_gone_says_since_when_and_what_to_use() -> None:
    (problem,) = validate({"compile": {"backend": "eager"}}, Version("0.16.6"))
    assert problem.message.startswith("compile.backend was removed in DeepSpeed 0.14.4")
    assert problem.replacement == "engine.compile(backend=...)"
    (gap,) = validate({"compile": {"deepcompile": True}}, Version("0.15.0"))
    assert gap.message.startswith("compile was removed in DeepSpeed 0.14.4")
    assert gap.consequence is Consequence.IGNORED


def test_a_release_that_is_newer_than_known_may_have_more_keys() -> None:
    config = {"colour": 1, "fp16": {"enabled": True, "colour": 1}, "amp": {}}
    at_newest, beyond = validate(config, NEWEST_KNOWN), validate(config, Version("99.0"))
    assert [p.consequence.value for p in at_newest] == ["ignored", "refused", "refused"]
    assert [p.consequence.value for p in beyond] == ["ignored", "ignored", "refused"]
    assert beyond[1].message == (
        "fp16.colour is not a key of any release up to 0.19.8, the newest that this dsguard knows; "
        "whether DeepSpeed 99.0 has it is not known"
    )


def test_a_hint_only_names_places_that_the_release_has() -> None:
    (new,) = validate({"deepcompile": True}, Version("0.19.8"))
    (old,) = validate({"deepcompile": True}, Version("0.12.6"))
    assert new.belongs == ("compile",)
    assert old.belongs == ()
