"""comms_logger: logging of collective operations."""

from typing import Any

from dsguard.schema.block import CheckedBlock, key


class CommsLogger(CheckedBlock):
    """Logging of collective operations.

    Source: deepspeed/comm/config.py.
    """

    enabled: bool = key(False, "Log collective operations.")
    debug: bool = key(False, "Add the name of the calling function.")
    prof_all: bool = key(True, "Profile every operation, not only those in prof_ops.")
    prof_ops: list[Any] = key([], "Names of the operations to profile.")
    verbose: bool = key(False, "Print each operation as it happens.")

    @classmethod
    def arguments(cls, given: Any) -> Any:
        """Before 0.15.0 the model was not DeepSpeed's own kind and kept ``"auto"``."""
        return super().arguments(given) if cls.is_since("0.15.0") else given
