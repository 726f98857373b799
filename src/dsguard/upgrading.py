"""What changes for one run between two releases of DeepSpeed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from dsguard.checking import Settings, check_source
from dsguard.model.fact import Fact, FactName, Known
from dsguard.model.report import Check, Target, TargetOrigin
from dsguard.model.source import Source
from dsguard.reading.errors import HjsonSyntaxError
from dsguard.reading.hjson import parse
from dsguard.schema.keys import KeyInfo, all_keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from packaging.version import Version

    from dsguard.launch.context import LaunchContext
    from dsguard.model.finding import Finding
    from dsguard.model.tree import Document


class ChangedDefault(Struct, frozen=True):
    """A key that the config leaves out and that means something else in the new release."""

    dotted: str
    old: Any
    new: Any


class ChangedFact(Struct, frozen=True):
    """A fact that differs between the releases, apart from the release itself."""

    name: FactName
    old: Fact
    new: Fact


class Upgrade(Struct, frozen=True):
    """The same run judged by two releases.

    ``appears`` are findings that only the new release has, ``goes`` those that only the old one
    has. ``defaults`` are listed only for blocks that the config uses.
    """

    old: Check
    new: Check
    appears: tuple[Finding, ...]
    goes: tuple[Finding, ...]
    facts: tuple[ChangedFact, ...]
    defaults: tuple[ChangedDefault, ...]


def compare(
    config: Source | Document | None,
    launch: LaunchContext | None,
    settings: Settings,
    old: Version,
    new: Version,
    *,
    config_path: Path | None = None,
) -> Upgrade:
    """Check one (config, launch) pair by both releases and say what differs.

    The launch is read once, as the new release's launcher reads it.
    """

    def judged(release: Version) -> Check:
        target = Target(str(release), TargetOrigin.OPTION)
        here = replace(settings, target=target)
        return check_source(config, launch, here, config_path=config_path)

    before, after = judged(old), judged(new)
    known_before = {_key(finding) for finding in before.findings}
    known_after = {_key(finding) for finding in after.findings}
    return Upgrade(
        before,
        after,
        tuple(f for f in after.findings if _key(f) not in known_before),
        tuple(f for f in before.findings if _key(f) not in known_after),
        tuple(_changed_facts(before, after)),
        tuple(_changed_defaults(_value(config), old, new)),
    )


def _key(finding: Finding) -> tuple[object, ...]:
    """What makes two findings the same: a message may name the release."""
    return finding.rule, finding.severity, finding.consequence, finding.location.span


def _changed_facts(old: Check, new: Check) -> Iterator[ChangedFact]:
    for name in old.facts:
        if name == "deepspeed_version":
            continue
        before, after = old.facts[name], new.facts[name]
        same_kind = type(before) is type(after)
        same_value = (
            before.value == after.value
            if isinstance(before, Known) and isinstance(after, Known)
            else True
        )
        if not (same_kind and same_value):
            yield ChangedFact(name, before, after)


def _value(config: Source | Document | None) -> dict[str, Any]:
    if isinstance(config, Source):
        try:
            config = parse(config)
        except HjsonSyntaxError:
            return {}
    value = config.value if config is not None else {}
    return value if isinstance(value, dict) else {}


def _changed_defaults(
    config: dict[str, Any], old: Version, new: Version
) -> Iterator[ChangedDefault]:
    for key in all_keys(new):
        if not key.exists_in(old):
            continue
        before, after = key.default_in(old), key.default_in(new)
        if before == after or not _left_out(config, key):
            continue
        yield ChangedDefault(key.dotted, before, after)


def _left_out(config: dict[str, Any], key: KeyInfo) -> bool:
    """Whether the block that holds a key is written and the key in it is not."""
    block: Any = config
    for parent in key.dotted.split(".")[:-1]:
        block = block.get(parent) if isinstance(block, dict) else None
    return isinstance(block, dict) and not any(name in block for name in key.spellings)
