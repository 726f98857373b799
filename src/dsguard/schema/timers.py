"""timers: timers of the engine."""

from typing import ClassVar

from dsguard.schema.block import CheckedBlock, UncheckedBlock, UnknownKeys, key


class Throughput(CheckedBlock):
    """The timer that reports samples per second.

    Source: deepspeed/utils/config.py.
    """

    enabled: bool = key(True, "Turn the throughput timer on.", since="0.14.3")
    synchronized: bool = key(True, "Synchronize the device when timing.", since="0.14.3")


class Timers(UncheckedBlock):
    """Timers by name; only throughput is looked for.

    Source: get_timers_config in deepspeed/utils/config.py.
    """

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    throughput: Throughput = key({}, "Throughput timer.", since="0.14.3")
