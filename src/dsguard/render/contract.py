"""The run contract, version 1: what a launch was checked to run with, as JSON.

The models are the one description of the format; the published schema is made from them. The
guard reads a contract without pydantic (:mod:`dsguard.facts.contract`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from dsguard import __version__
from dsguard.model.fact import FactName
from dsguard.render.json_report import (
    FactV1,
    Part,
    TargetV1,
    ToolV1,
    UserText,
    check_v1,
    published_schema,
)
from dsguard.render.values import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dsguard.model.report import Check


class InputV1(Part):
    """A file that the facts were read from."""

    file: UserText = Field(description="The file as it was named.")
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of its bytes, in hex.")


class GuardV1(Part):
    """What the guard had counted when it wrote the contract beside a checkpoint."""

    pending_micro_batches: int = Field(
        ge=0, description="Micro-batches whose gradients are not in the checkpoint."
    )
    optimizer_steps: int = Field(ge=0, description="Optimizer steps on one rank.")


class ContractV1(Part):
    """What `dsguard check --write-contract` and `dsguard run` store."""

    contract: Literal[1] = Field(description="The version of this format.")
    tool: ToolV1 = Field(description="The program that wrote the contract.")
    config: UserText | None = Field(
        description="The config file as it was named; null where the launch names none that"
        " could be read."
    )
    launch: UserText | None = Field(
        description="The launch command as one line; null where none was given."
    )
    target: TargetV1 = Field(description="The DeepSpeed release that the facts hold for.")
    facts: dict[FactName, FactV1] = Field(
        description="What will run, and who said so, by the name of the fact."
    )
    inputs: list[InputV1] = Field(description="The files that the facts were read from.")
    packages: dict[str, str] = Field(
        description="Releases of the packages of the run that are installed here, by name."
    )
    guard: GuardV1 | None = Field(
        default=None,
        description="What the guard had counted; only in a contract beside a checkpoint.",
    )


def render_contract(
    check: Check,
    inputs: Sequence[tuple[str, str]],
    packages: Mapping[str, str],
    *,
    indent: int | None = 2,
) -> str:
    """The contract of one check as JSON.

    Args:
        check: the check whose facts are to hold.
        inputs: the files that were read: name and SHA-256 in hex.
        packages: installed releases by the name of the package.
        indent: None for one line, as in an environment variable.
    """
    told = check_v1(check)
    contract = ContractV1(
        contract=1,
        tool=ToolV1(name="dsguard", version=__version__),
        config=told.config,
        launch=told.launch,
        target=told.target,
        facts=told.facts,
        inputs=[InputV1(file=file, sha256=digest) for file, digest in inputs],
        packages=dict(packages),
    )
    data = contract.model_dump(mode="python", exclude_unset=True)
    return json_text(data, indent)


def contract_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a contract."""
    return published_schema(ContractV1, "dsguard run contract")
