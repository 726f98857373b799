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
    return (
        isinstance(value, list) and bool(value) and all(isinstance(v, int) and v > 0 for v in value)
    )


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
        yield from _version_2_needed(given, at)
        yield from _too_large(given, at)


def _version_2_needed(given: dict[str, Any], at: Place) -> Iterator[Problem]:
    """Only version 0.2 knows of model parallelism, and it splits nodes evenly."""
    parallel, version = given.get("model_parallel_size", 1), given.get("version", 0.2)
    in_node = given.get("num_gpus_per_node", 1)
    if not _at_least(2).test(parallel) or not _is_version(version):
        return
    place = at.child("model_parallel_size")
    if float(version) != 0.2:
        yield wording.combination(
            place,
            parallel,
            at.child("version"),
            f"{place.dotted} is {parallel}, which {at.dotted}.version 0.1 does not support",
        )
    elif _at_least(1).test(in_node) and in_node % parallel:
        yield wording.combination(
            place,
            parallel,
            at.child("num_gpus_per_node") if "num_gpus_per_node" in given else None,
            f"{place.dotted} is {parallel}, which does not divide {at.dotted}.num_gpus_per_node "
            f"{in_node}",
        )


def _too_large(given: dict[str, Any], at: Place) -> Iterator[Problem]:
    """Every micro batch has to fit into the largest batch (version 0.1)."""
    sizes: Any = given.get("micro_batch_sizes")
    largest: Any = given.get("max_train_batch_size")
    version = given.get("version", 0.2)
    if not _is_version(version) or float(version) != 0.1:
        return
    if _are_batch_sizes(sizes) and _at_least(1).test(largest) and max(sizes) > largest:
        yield wording.combination(
            at.child("micro_batch_sizes"),
            sizes,
            at.child("max_train_batch_size"),
            f"{at.dotted}.micro_batch_sizes holds {max(sizes)}, more than "
            f"{at.dotted}.max_train_batch_size {largest}",
        )
