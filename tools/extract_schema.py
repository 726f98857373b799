"""Compare what a release of DeepSpeed reads from its config with what dsguard knows of it.

    python tools/extract_schema.py                          the installed release
    python tools/extract_schema.py deepspeed-0.19.9.tar.gz  an sdist, as pip download leaves it
    python tools/extract_schema.py path/to/unpacked --json

Nothing of DeepSpeed is imported or run: its source is interpreted just far enough to follow the
config object through the functions that read it. What is new, gone or changed is printed, and the
exit status is 1 if anything is. For a release newer than those known, that is the list of what to
enter into ``src/dsguard/schema``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.version import Version

from deepspeed_source.follow import Reader
from deepspeed_source.models import Setting
from deepspeed_source.sources import Sources
from deepspeed_source.values import UNKNOWN
from dsguard.schema.block import Block, UnknownKeys
from dsguard.schema.config import Config
from dsguard.schema.releases import as_of
from dsguard.schema.shape import FieldFacts, fields_of

CURRICULUM_METRIC = "data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.*"

ROOTS = (
    # What is called with the config or a part of it, and where that part stands.
    ("deepspeed.runtime.config", "DeepSpeedConfig", {"config": ""}),
    ("deepspeed", "initialize", {"config": ""}),
    (
        "deepspeed.runtime.data_pipeline.data_sampling.data_sampler",
        "DeepSpeedDataSampler",
        {"data_efficiency_config": "data_efficiency"},
    ),
    (
        "deepspeed.runtime.data_pipeline.curriculum_scheduler",
        "CurriculumScheduler",
        {"config": CURRICULUM_METRIC},
    ),
    (
        "deepspeed.runtime.data_pipeline.data_routing.scheduler",
        "RandomLTDScheduler",
        {"config": "data_efficiency.data_routing.random_ltd"},
    ),
    (
        "deepspeed.module_inject.autotp_config",
        "AutoTPConfig.from_dict",
        {"config_dict": "tensor_parallel.partition_config"},
    ),
)

PIPELINE = ("deepspeed.runtime.pipe.engine", "pipeline")
"""A module that reads a part of the config as an attribute of this name, which is its path too."""

NOT_FOLLOWED = {
    "optimizer.params": "arguments of constructors",
    "scheduler.params": "arguments of constructors",
    "amp": "arguments of apex",
    "progressive_layer_drop": "arguments of a constructor",
    "curriculum_learning": "handed to a scheduler that takes other dictionaries too",
    CURRICULUM_METRIC: "handed to a scheduler that takes other dictionaries too",
    "data_efficiency.data_routing.random_ltd": "read by the engine through the parsed config",
    "data_efficiency.data_sampling.dynamic_batching.metrics_path": "read by the data sampler",
    "quantize_training": "only reached through a name that older releases do not define",
    "compression_training.layer_reduction": "copied as a whole",
    "tensor_parallel.partition_config.layer_specs": "a list of objects",
    "zero_optimization.zeropp_loco_param": "handed on as a whole",
    "datastates_ckpt": "handed on as a whole",
    "eigenvalue": "only refused, never read",
    "allgather_size": "only with an old form of zero_optimization",
}
"""Keys that the tool does not look for, nor below them, and why."""


@dataclass(frozen=True)
class Difference:
    """Where dsguard and the source differ: ``what`` is new, gone, default, limits and so on."""

    key: str
    what: str
    dsguard: Any
    deepspeed: Any

    def __str__(self) -> str:
        if self.what in ("new", "gone"):
            return f"{self.key}: {self.what}"
        return f"{self.key}: {self.what} is {self.deepspeed!r}, dsguard has {self.dsguard!r}"


def extract(sources: Sources) -> Reader:
    """Everything a release reads from its config."""
    reader = Reader(sources)
    for module, name, parts in ROOTS:
        reader.start(module, name, parts)
    reader.scan(*PIPELINE)
    return reader


def known(block: type[Block], prefix: str = "") -> Iterator[tuple[str, FieldFacts]]:
    """Every key of a release as dsguard has it, by its dotted path."""
    for facts in dict.fromkeys(fields_of(block).values()):
        dotted, inner = prefix + facts.name, facts.shape.block
        yield dotted, facts
        if inner is not None:
            yield from known(inner, f"{dotted}.")
        if facts.shape.blocks is not None:
            yield from known(facts.shape.blocks, f"{dotted}.*.")


def compare(reader: Reader, version: Version) -> list[Difference]:
    """Where a release differs from what dsguard has for it, by key."""
    ours = {path: key for path, key in known(as_of(Config, version)) if not _left_out(path)}
    settings = {
        f"{path}.{name}" if path else name: setting
        for path, model in reader.models.items()
        for name, setting in reader.declared.settings(model).items()
    }
    gone = _refused_when_gone(version)
    refused = {
        *reader.table("_REMOVED_TOP_LEVEL_CONFIG_KEYS"),
        *(f"zero_optimization.{key}" for key in reader.table("_REMOVED_ZERO_CONFIG_KEYS")),
    }
    theirs = {
        path
        for path in {*reader.reads, *settings} - gone - refused
        if path and not _left_out(path) and not path.endswith("*")
    }
    found = [Difference(path, "new", None, None) for path in theirs - ours.keys()]
    found += [Difference(path, "gone", None, None) for path in ours.keys() - theirs]
    for path in theirs & ours.keys():
        found.extend(_key(path, ours[path], settings.get(path), reader))
    for path in refused ^ gone:
        found.append(Difference(path, "refused", path in gone, path in refused))
    return sorted(found, key=lambda difference: (difference.key, difference.what))


def _key(
    path: str, facts: FieldFacts, setting: Setting | None, reader: Reader
) -> Iterator[Difference]:
    shape = facts.shape
    defaults = [setting.default] if setting is not None else reader.reads[path]
    defaults = [value for value in defaults if value is not UNKNOWN]
    ours = facts.default.value if isinstance(facts.default, Enum) else facts.default
    if defaults and ours not in defaults and shape.block is None:
        yield Difference(path, "default", ours, defaults[0])
    if shape.block is not None:
        model = reader.models.get(path)
        refuses = model is not None and reader.declared.refuses_unknown_keys(model)
        if refuses != (shape.block.unknown_keys is UnknownKeys.REFUSED):
            yield Difference(path, "refusal of unknown keys", not refuses, refuses)
    if setting is None:
        return
    limits = frozenset(f"{bound.sign} {bound.number:g}" for bound in shape.bounds)
    if setting.limits != limits:
        yield Difference(path, "limits", sorted(limits), sorted(setting.limits))
    if setting.name not in facts.spellings:
        yield Difference(path, "other spelling", facts.spellings[-1], setting.name)
    kinds = shape.kinds
    if "anything" not in kinds | setting.kinds and setting.kinds != kinds:
        yield Difference(path, "type", sorted(kinds), sorted(setting.kinds))
    choices = shape.choices or (shape.items.choices if shape.items else ())
    if setting.choices and set(setting.choices) != set(choices):
        yield Difference(path, "choices", list(choices), list(setting.choices))


def _refused_when_gone(version: Version) -> set[str]:
    """Keys that dsguard calls refused in a release because it has removed them."""
    found = set()
    for path, facts in known(Config):
        removed = facts.history.removed
        if facts.history.refused_when_gone and removed is not None and removed <= version:
            found.add(path)
    return found


def _left_out(path: str) -> bool:
    return any(path.startswith(f"{start}.") or path == start for start in NOT_FOLLOWED)


def main() -> int:
    """Compare, print, and say by the exit status whether anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "source", nargs="?", type=Path, help="an sdist, or a folder that holds deepspeed/"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    place = arguments.source or Path(str(distribution("deepspeed").locate_file("")))
    sources = Sources(place)
    found = compare(extract(sources), sources.version)
    if arguments.json:
        rows = [asdict(difference) for difference in found]
        print(json.dumps({"version": str(sources.version), "differences": rows}, default=str))
    else:
        print(f"DeepSpeed {sources.version}: {len(found) or 'no'} differences")
        for difference in found:
            print(f"  {difference}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
