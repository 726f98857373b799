"""A run contract, read: what a launch was checked to run with.

:mod:`dsguard.render.contract` writes it. This module imports the standard library and the model
only, because the guard reads a contract inside the training process.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dsguard.model.fact import FACT_NAMES, FactName, Known, Origin, OriginKind

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "DSGUARD_CONTRACT"
"""The environment variable in which a launch finds its contract: the JSON itself, or a path."""

CHECKPOINT_NAME = "dsguard.json"
"""The file in which a checkpoint keeps what it was trained with, in the folder of its tag."""

PACKAGES = ("accelerate", "deepspeed", "lightning", "torch", "transformers", "trl")
"""Packages whose release can change what a run does."""

FORMAT = 1


class ContractError(ValueError):
    """A text is no contract that this release can read."""


class Contract(Struct, frozen=True):
    """What was checked before the launch.

    ``facts`` are those that were known, with origins that say in words who gave them.
    ``unknown`` maps the others to the reason. ``inputs`` maps files to the SHA-256 of their bytes,
    ``packages`` names to releases. ``name`` is what the contract is called in messages.
    """

    name: str
    facts: Mapping[FactName, Known]
    unknown: Mapping[FactName, str]
    config: str | None
    launch: str | None
    deepspeed: str
    inputs: Mapping[str, str]
    packages: Mapping[str, str]


def read_contract(text: str, name: str) -> Contract:
    """Read a contract.

    Raises:
        ContractError: it is no JSON, no contract, or of a later format; the message names it.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{name} is no JSON that can be read: {error}") from None
    if not isinstance(data, dict) or "contract" not in data:
        raise ContractError(f"{name} is no contract of dsguard: it has no key 'contract'")
    if data["contract"] != FORMAT:
        raise ContractError(
            f"{name} is a contract of format {data['contract']}; this dsguard reads format {FORMAT}"
        )
    try:
        return _contract(data, name)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ContractError(
            f"{name} is a damaged contract ({type(error).__name__}: {error})"
        ) from None


def _contract(data: Mapping[str, Any], name: str) -> Contract:
    facts: dict[FactName, Known] = {}
    unknown: dict[FactName, str] = {}
    names: dict[str, FactName] = {fact: fact for fact in FACT_NAMES}
    for key, fact in data["facts"].items():
        known_name = names.get(key)
        if known_name is None:
            continue  # a later release may know more
        if fact["state"] == "known":
            facts[known_name] = Known(fact["value"], _origin(fact["origin"]))
        elif fact["state"] == "unknown":
            unknown[known_name] = str(fact["reason"])
        else:
            unknown[known_name] = "its sources disagree"
    return Contract(
        name=name,
        facts=facts,
        unknown=unknown,
        config=data["config"],
        launch=data["launch"],
        deepspeed=str(data["target"]["deepspeed"]),
        inputs={str(one["file"]): str(one["sha256"]) for one in data["inputs"]},
        packages={str(package): str(release) for package, release in data["packages"].items()},
    )


def _origin(data: Mapping[str, Any]) -> Origin:
    """An origin whose place has become words, because the file is not at hand any more."""
    said = data.get("argument")
    if "file" in data:
        place = f"{data['file']}:{data['line']}:{data['column']}"
        said = place if said is None else f"{said}, {place}"
    names: dict[str, FactName] = {fact: fact for fact in FACT_NAMES}
    return Origin(
        OriginKind(data["kind"]),
        argument=said,
        whose=data.get("whose"),
        facts=tuple(names[fact] for fact in data.get("facts", ()) if fact in names),
        formula=data.get("formula", ""),
    )
