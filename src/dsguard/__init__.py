"""dsguard: know what DeepSpeed will really run before you launch it.

The public names are loaded when they are used, so that importing dsguard costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsguard.api import check_dict, check_file, check_text
    from dsguard.model.finding import Finding, Severity
    from dsguard.model.report import Report
    from dsguard.runtime import Guard, GuardViolation, guard

__version__ = "0.1.0"

__all__ = [
    "Finding",
    "Guard",
    "GuardViolation",
    "Report",
    "Severity",
    "__version__",
    "check_dict",
    "check_file",
    "check_text",
    "guard",
]

_HOMES = {
    "Finding": "dsguard.model.finding",
    "Guard": "dsguard.runtime",
    "GuardViolation": "dsguard.runtime",
    "Report": "dsguard.model.report",
    "Severity": "dsguard.model.finding",
    "check_dict": "dsguard.api",
    "check_file": "dsguard.api",
    "check_text": "dsguard.api",
    "guard": "dsguard.runtime",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
