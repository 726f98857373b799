"""Even work for every rank: measure a way of batching, and batch so that no rank waits.

``audit`` says what a sampler, a list of batches or a loader costs in padding and waiting, and
where ranks would part; :class:`BalancedBatchSampler` deals micro-batches of equal work. Both need
numpy (``pip install 'dsguard[data]'``) and neither needs torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsguard.data.auditing import audit
    from dsguard.data.report import Audit
    from dsguard.data.sampler import BalancedBatchSampler

__all__ = ["Audit", "BalancedBatchSampler", "audit"]

_HOMES = {
    "Audit": "dsguard.data.report",
    "BalancedBatchSampler": "dsguard.data.sampler",
    "audit": "dsguard.data.auditing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise ModuleNotFoundError(
            "dsguard.data needs numpy: pip install 'dsguard[data]'", name="numpy"
        ) from None


def __dir__() -> list[str]:
    return sorted(__all__)
