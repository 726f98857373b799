"""elasticity: batch sizes that fit many numbers of GPUs, up to 0.19.7."""

from collections.abc import Iterator
from typing import Annotated, Any

from dsguard.schema import wording
from dsguard.schema.block import Takes, UncheckedBlock, key
from dsguard.schema.problem import Place, Problem

_VERSIONS = (0.1, 0.2)


def _at_least(least: int) -> Takes:
    return Takes(
        lambda value: isinstance(value, int | float) and value >= least,
        f"a number of at least {least}",
    )


def _are_batch_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, int) and v > 0 for v in value)


def _is_version(value: Any) -> bool:
    try:
        return float(value) in _VERSIONS
    except (TypeError, ValueError):
        return False


class Elasticity(UncheckedBlock):
    """Batch sizes that DeepSpeed chooses so that a job runs on many numbers of GPUs.

    Whether the number of processes fits them is not judged here. Source: ElasticityConfig in
    deepspeed/elasticity/config.py and compute_elastic_config beside it, up to 0.19.7.
    """

    enabled: bool = key(False, "Let DeepSpeed choose the batch sizes.")
    ignore_non_elastic_batch_info: bool = key(
        False, "Overwrite batch keys outside this block instead of refusing them."
    )
    max_gpus: Annotated[int, _at_least(1)] = key(10000, "Most GPUs.")
    max_train_batch_size: Annotated[int, _at_least(1)] = key(
        2000, "Largest train_batch_size; must be given when enabled."
    )
    micro_batch_sizes: Annotated[
        list[int], Takes(_are_batch_sizes, "a list of whole numbers above 0")
    ] = key([2, 4, 6], "Micro batch sizes to choose from; must be given when enabled.")
    min_gpus: Annotated[int, _at_least(1)] = key(1, "Fewest GPUs.")
    min_time: Annotated[int, _at_least(0)] = key(0, "Minutes between two changes of scale.")
    model_parallel_size: Annotated[int, _at_least(1)] = key(
        1, "Degree of model parallelism (version 0.2)."
    )
    num_gpus_per_node: Annotated[int, _at_least(1)] = key(1, "GPUs in a node (version 0.2).")
    prefer_larger_batch: bool = key(True, "Prefer the largest batch size that fits.")
    version: Annotated[float, Takes(_is_version, "0.1 or 0.2")] = key(
        0.2, "Version of the algorithm: 0.1 or 0.2."
    )

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Switched off, nothing else is looked at."""
        return frozenset() if given.get("enabled") else frozenset(given) - {"enabled"}

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Switched on, two keys are needed and some numbers have to fit each other."""
        if not given.get("enabled"):
            return
        for name in ("max_train_batch_size", "micro_batch_sizes"):
            if name not in given:
                yield wording.combination(
                    at.child("enabled"),
                    given["enabled"],
                    None,
                    f"{at.dotted} is enabled without {at.dotted}.{name}",
                )
        least, most = given.get("min_gpus", 1), given.get("max_gpus", 10000)
        if _at_least(1).test(least) and _at_least(1).test(most) and least > most:
            name = "min_gpus" if "min_gpus" in given else "max_gpus"
            yield wording.combination(
                at.child(name),
                given[name],
                at.child("max_gpus") if {"min_gpus", "max_gpus"} <= given.keys() else None,
                f"{at.dotted}.min_gpus is {least} and {at.dotted}.max_gpus {most}",
            )
        parallel, version = given.get("model_parallel_size", 1), given.get("version", 0.2)
        if _at_least(2).test(parallel) and _is_version(version) and float(version) != 0.2:
            yield wording.combination(
                at.child("model_parallel_size"),
                parallel,
                at.child("version"),
                f"{at.dotted}.model_parallel_size is {parallel}, which {at.dotted}.version 0.1 "
                "does not support",
            )
