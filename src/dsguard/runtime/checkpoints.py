"""What a checkpoint was trained with, kept beside it as a run contract."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsguard import __version__
from dsguard.facts.contract import (
    CHECKPOINT_NAME,
    FORMAT,
    PACKAGES,
    Contract,
    read_contract,
)
from dsguard.model.fact import FactName, Known, Origin, OriginKind
from dsguard.reading.load import read_regular
from dsguard.runtime.loaded import release_of

if TYPE_CHECKING:
    from pathlib import Path

    from dsguard.runtime.windows import Windows


@dataclass(frozen=True)
class Origins:
    """Where a checkpoint comes from.

    ``contract`` holds what its engine ran with; ``pending`` micro-batches were accumulated when
    it was written, and their gradients are not in it.
    """

    contract: Contract
    pending: int


def keep(
    folder: Path, facts: Mapping[FactName, Known], windows: Windows, contract: Contract | None
) -> None:
    """Write the file beside a checkpoint, whole or not at all.

    Raises:
        OSError: it cannot be written; the caller contains it.
    """
    data = {
        "contract": FORMAT,
        "tool": {"name": "dsguard", "version": __version__},
        "config": None if contract is None else contract.config,
        "launch": None if contract is None else contract.launch,
        "target": {"deepspeed": release_of("deepspeed") or "unknown", "origin": "installed"},
        "facts": {
            name: {
                "state": "known",
                "value": known.value,
                "origin": _origin(known.origin),
                "ignored": [],
            }
            for name, known in facts.items()
        },
        "inputs": []
        if contract is None
        else [{"file": name, "sha256": digest} for name, digest in contract.inputs.items()],
        "packages": {name: release for name in PACKAGES if (release := release_of(name))},
        "guard": {
            "pending_micro_batches": windows.open,
            "optimizer_steps": windows.optimizer_steps,
        },
    }
    path = folder / CHECKPOINT_NAME
    part = folder / f".{CHECKPOINT_NAME}.{os.getpid()}"
    try:
        part.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def origins_of(folder: Path, client_state: Any) -> Origins | None:
    """Where a checkpoint comes from: by the guard's file, else by the config DeepSpeed keeps.

    DeepSpeed stores the writer's ``ds_config`` in its client state (``_save_checkpoint`` in
    runtime/engine.py); it holds only what that config spells out.
    """
    try:
        file = folder / CHECKPOINT_NAME
        text = read_regular(file, str(file)).decode("utf-8")
        pending = json.loads(text).get("guard", {}).get("pending_micro_batches", 0)
        return Origins(read_contract(text, str(file)), int(pending))
    except Exception:
        pass  # none was written, or not by this dsguard
    config = client_state.get("ds_config") if isinstance(client_state, Mapping) else None
    if not isinstance(config, Mapping):
        return None
    facts = {
        name: Known(config[key], Origin(OriginKind.CONFIG, argument="the checkpoint's config"))
        for name, key in _KEYS.items()
        if isinstance(config.get(key), int)
    }
    release = str(client_state.get("ds_version", "unknown"))
    return Origins(Contract(str(folder), facts, {}, None, None, release, {}, {}), 0)


_KEYS: dict[FactName, str] = {
    "train_batch_size": "train_batch_size",
    "micro_batch_size": "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}


def _origin(origin: Origin) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": origin.kind.value}
    if origin.argument:
        data["argument"] = origin.argument
    if origin.whose:
        data["whose"] = origin.whose
    if origin.formula:
        data["formula"] = origin.formula
    return data
