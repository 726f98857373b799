"""The guard: a running engine held to what was asked.

``from dsguard import guard; guard(engine)`` once, after ``deepspeed.initialize``. Importing
this package imports neither PyTorch nor DeepSpeed, nor the packages of the command line.
"""

from __future__ import annotations

from dsguard.runtime.attach import guard
from dsguard.runtime.reporting import GuardViolation
from dsguard.runtime.session import Guard
from dsguard.runtime.summary import Summary

__all__ = ["Guard", "GuardViolation", "Summary", "guard"]
