"""The slots of hosts, and the filters that pick some of them.

As ``deepspeed/launcher/runner.py`` (``parse_node_config_list``, ``parse_resource_filter``) of
0.19.8 picks them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from dsguard.launch.context import LaunchTrouble, TroubleKind

if TYPE_CHECKING:
    from dsguard.model.source import Location


_LISTED = 64
"""Devices of a host that are told one by one; a hostfile may claim any number of them."""


class Slots(Struct, frozen=True):
    """The slots taken on one host: the ones named, or all of ``total`` but those dropped.

    ``total`` is None where the machine's devices are not counted.
    """

    total: int | None
    named: frozenset[int] | None = None
    dropped: frozenset[int] = frozenset()

    @property
    def count(self) -> int | None:
        """How many slots are taken; None where nobody counted."""
        if self.named is not None:
            return len(self.named)
        return None if self.total is None else self.total - len(self.dropped)

    @property
    def leading(self) -> bool:
        """Whether these are the slots 0, 1, 2 and so on, without a gap."""
        if self.named is not None:
            return all(slot < len(self.named) for slot in self.named)
        return self.count is None or all(slot >= self.count for slot in self.dropped)

    @property
    def described(self) -> str:
        """Which devices these are, such as ``device 0`` or ``devices 0, 1 and 5``."""
        count = self.count
        if count is None:
            return "the other devices" if self.dropped else "all devices"
        if count <= 0:
            return "no device"
        if count > 2 and self.leading:
            return f"devices 0 to {count - 1}"
        if count > _LISTED:
            return f"{count} devices"
        taken = self.named or (slot for slot in range(self.total or 0) if slot not in self.dropped)
        *most, last = (str(slot) for slot in sorted(taken))
        return f"devices {', '.join(most)} and {last}" if most else f"device {last}"

    def may_hold(self, slot: int) -> bool:
        """Whether the host has this slot, or could have it."""
        return slot >= 0 and (self.total is None or slot < self.total)

    def are(self, slots: frozenset[int]) -> bool:
        """Whether exactly these slots are taken."""
        if self.named is not None:
            return self.named == slots
        return self.leading and self.count == len(slots) and slots == frozenset(range(len(slots)))


Hosts: TypeAlias = dict[str, Slots]
"""The slots taken on each host, in the order of the hostfile."""


class RefusedError(Exception):
    """The launcher stops."""

    def __init__(self, kind: TroubleKind, message: str, location: Location) -> None:
        super().__init__(message)
        self.trouble = LaunchTrouble(kind, message, location, True)


def select(pool: Hosts, text: str, at: Location, *, including: bool) -> Hosts:
    """The hosts that ``--include`` or ``--exclude`` leaves: ``NAME[:SLOT[,SLOT ...]][@...]``.

    Raises:
        RefusedError: the text is no filter, names a host or slot that is not in the pool, or
            leaves nothing.
    """
    hosts = {} if including else dict(pool)
    for host, slots in _parse_filter(text, at).items():
        if host not in pool:
            raise RefusedError("unknown-host", f"there is no host {host!r} to run on", at)
        for slot in sorted(slots):
            if not pool[host].may_hold(slot):
                message = f"{host} has no slot {slot}: it has {_described(pool[host].total)}"
                raise RefusedError("unknown-slot", message, at)
        if including:
            hosts[host] = Slots(pool[host].total, slots) if slots else pool[host]
        elif slots:
            hosts[host] = Slots(pool[host].total, dropped=slots)
        else:
            del hosts[host]
    selected = {host: hosts[host] for host in pool if host in hosts and hosts[host].count != 0}
    if not selected:
        raise RefusedError("nothing-selected", "no host is left to run on", at)
    return selected


def _described(total: int | None) -> str:
    if total is None:
        return "slots from 0 on"
    if total <= 2:
        return ("no slots", "slot 0 only", "slots 0 and 1")[total]
    return f"slots 0 to {total - 1}"


def _parse_filter(text: str, at: Location) -> dict[str, frozenset[int]]:
    """Slots by host, in the order written; no slots mean all of them."""
    hosts: dict[str, frozenset[int]] = {}
    for part in text.split("@"):
        host, *lists = part.split(":")
        if len(lists) > 1:
            raise RefusedError("filter-syntax", f"{part!r} has more than one colon", at)
        try:
            slots = frozenset(int(slot) for slot in lists[0].split(",")) if lists else frozenset()
        except ValueError:
            message = f"{lists[0]!r} is not a list of slots such as 0,2"
            raise RefusedError("filter-syntax", message, at) from None
        hosts[host] = hosts.get(host, frozenset()) | slots
    return hosts
