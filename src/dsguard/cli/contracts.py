"""The run contract of a checked pair, and reading contracts that a user names."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from dsguard.cli.output import end_unwritten
from dsguard.facts.contract import PACKAGES, Contract, ContractError, read_contract
from dsguard.frontends.installed import installed
from dsguard.reading.errors import ReadError
from dsguard.reading.load import load_path, read_regular
from dsguard.render.contract import render_contract
from dsguard.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dsguard.model.report import Check
    from dsguard.pairing import Input


def contract_of(pair: Input, check: Check, indent: int | None) -> str:
    """The contract of one checked pair, as JSON; on one line where ``indent`` is None."""
    found = {name: installed(name) for name in PACKAGES}
    packages = {name: str(release) for name, release in found.items() if release is not None}
    return render_contract(check, list(_inputs(pair)), packages, indent=indent)


def write_contract(path: Path, text: str) -> None:
    """Keep a contract in a file, whole or not at all.

    Raises:
        typer.BadParameter: there is no place for the file.
        typer.Exit: it cannot be written.
    """
    try:
        write_whole(path, text + "\n")
    except OSError as error:
        end_unwritten(path, error, "--write-contract")


def load_contract(path: Path) -> Contract:
    """The contract in a file.

    Raises:
        ReadError: the file cannot be read, or holds no contract.
    """
    source = load_path(path)
    try:
        return read_contract(source.text, source.name)
    except ContractError as error:
        message = str(error).removeprefix(f"{source.name} ")
        raise ReadError(
            source.name, message, "dsguard check --write-contract FILE writes one"
        ) from None


def _inputs(pair: Input) -> Iterator[tuple[str, str]]:
    """The files that a pair was read from, each once, with their SHA-256."""
    seen: set[str] = set()
    for name, path in pair.files():
        with suppress(ReadError):
            digest = hashlib.sha256(read_regular(path, name)).hexdigest()
            if name not in seen:
                seen.add(name)
                yield name, digest
