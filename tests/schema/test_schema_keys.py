from __future__ import annotations

from dsguard.schema.block import UnknownKeys
from dsguard.schema.history import NEWEST_KNOWN, OLDEST_KNOWN
from dsguard.schema.keys import all_keys, find


def test_a_key_is_found_by_pointer_and_by_path() -> None:
    key = find("/zero_optimization/reduce_bucket_size")
    assert key is not None
    assert key == find("zero_optimization.reduce_bucket_size")
    assert key.type == "a whole number above 0"
    assert key.default == 500_000_000
    assert key.unknown_keys is None


def test_a_short_spelling_is_found_under_the_documented_one() -> None:
    key = find("zero_optimization.max_live_parameters")
    assert key is not None
    assert key.dotted == "zero_optimization.stage3_max_live_parameters"
    assert key.spellings == ("stage3_max_live_parameters", "max_live_parameters")


def test_a_key_below_a_free_name_is_found() -> None:
    path = "data_efficiency.data_sampling.curriculum_learning.curriculum_metrics"
    key = find(f"{path}.seqlen.schedule_config.root_degree")
    assert key is not None
    assert key.dotted == f"{path}.*.schedule_config.root_degree"


def test_a_block_says_what_happens_to_unknown_keys() -> None:
    treatments = {
        path: key.unknown_keys
        for path in ("fp16", "aio", "optimizer.params", "tensor_parallel.partition_config")
        if (key := find(path))
    }
    assert treatments == {
        "fp16": UnknownKeys.REFUSED,
        "aio": UnknownKeys.IGNORED,
        "optimizer.params": UnknownKeys.FREE,
        "tensor_parallel.partition_config": UnknownKeys.IGNORED,
    }


def test_nothing_is_found_where_no_key_is() -> None:
    for path in ("", "/", "colour", "/fp16/colour", "fp16.enabled.more", "gradient_clipping.x"):
        assert find(path) is None


def test_history_is_consistent() -> None:
    for key in all_keys():
        assert OLDEST_KNOWN <= key.since <= NEWEST_KNOWN, key.dotted
        parent = find(key.dotted.rpartition(".")[0])
        if parent is not None and "*" not in key.dotted:
            assert parent.since <= key.since, key.dotted
        if key.deprecated:
            assert key.since <= key.deprecated, key.dotted
        replacement = (key.replaced_by or "").split(" / ")
        assert all(not path or find(path) for path in replacement), key.dotted


def test_paths_are_unique() -> None:
    assert len({key.dotted for key in all_keys()}) == len(all_keys())
