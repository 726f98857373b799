"""The contract that a run is held to, where one was stored before the launch."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dsguard.facts.contract import VARIABLE, Contract, ContractError, read_contract
from dsguard.reading.errors import ReadError
from dsguard.reading.load import load_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.model.fact import FactName, Known

ContractGiven: TypeAlias = "Contract | str | os.PathLike[str] | None"
"""What ``guard(contract=…)`` takes."""

_HELD: tuple[FactName, ...] = (
    "train_batch_size",
    "micro_batch_size",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "zero_stage",
    "precision",
    "world_size",
)
"""Facts of a contract that an engine answers in the same terms."""


def contract_of_run(given: ContractGiven, environ: Mapping[str, str]) -> Contract | None:
    """The contract that was given, else the one that ``dsguard run`` has left in the environment.

    Raises:
        ValueError: the given one cannot be read. One in the environment that cannot is said in
            the log and left aside: it must not stop a training.
    """
    if isinstance(given, Contract):
        return given
    if given is not None:
        return _read(os.fspath(given))
    stored = environ.get(VARIABLE)
    if not stored:
        return None
    try:
        return _read(stored)
    except ValueError as error:
        with suppress(Exception):  # a handler of the script may raise
            logging.getLogger("dsguard.guard").warning("%s; the run is held to no contract", error)
        return None


def asked_by(contract: Contract) -> dict[FactName, Known]:
    """What the contract asks of an engine."""
    return {name: contract.facts[name] for name in _HELD if name in contract.facts}


def _read(text: str) -> Contract:
    if text.lstrip().startswith("{"):
        return read_contract(text, f"the contract in {VARIABLE}")
    try:
        source = load_path(Path(text))
    except ReadError as error:
        raise ContractError(f"the contract {error}") from None
    return read_contract(source.text, source.name)
