"""Which hosts and devices a ``deepspeed`` launch takes, and how many processes that makes.

Decides in the order of ``deepspeed/launcher/runner.py`` (``main``, ``parse_resource_filter``,
``apply_num_nodes_and_gpus``) and ``multinode_runner.py`` (the back ends' own checks), 0.19.8.
``accelerate launch`` on several machines goes through here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from dsguard.launch.arguments import hidden_reason
from dsguard.launch.context import Argument, LaunchTrouble, TroubleKind
from dsguard.launch.counts import Counts, counted, default
from dsguard.launch.slots import Hosts, RefusedError, Slots, select
from dsguard.model.fact import Fact, Known, Origin, OriginKind, Unknown

if TYPE_CHECKING:
    from dsguard.launch.hostfile import Hostfile
    from dsguard.model.source import Location

_WHOLE_POOL_BACKENDS = ("openmpi", "mpich", "impi", "mvapich")
_EQUAL_SLOTS_BACKENDS = ("mpich", "impi", "mvapich")
BACKENDS = ("pdsh", *_WHOLE_POOL_BACKENDS, "slurm")
"""What ``--launcher`` may name, in any case."""

_LOCAL = "localhost"
_UNCOUNTED = (
    "without a hostfile and --num_gpus, deepspeed starts one process for each device "
    "of the machine it runs on"
)


class Request(Struct, frozen=True):
    """What a launch asks for; an option that is not given is None.

    ``location`` is where to point for what no option says. ``visible`` is a leading
    ``CUDA_VISIBLE_DEVICES=...``; ``devices`` how many devices the machine has, where known.
    """

    location: Location
    hostfile: Hostfile | None = None
    include: Fact | None = None
    exclude: Fact | None = None
    num_nodes: Fact | None = None
    num_gpus: Fact | None = None
    node_rank: Fact | None = None
    backend: str = "pdsh"
    backend_location: Location | None = None
    no_ssh: bool = False
    force_multi: bool = False
    visible: Argument | None = None
    devices: Known | None = None


class Allocation(NamedTuple):
    """How many processes start where, and what is wrong with the request."""

    counts: Counts
    troubles: tuple[LaunchTrouble, ...]


def allocate(request: Request) -> Allocation:
    """Count the processes of a request; a refusal leaves the counts unknown."""
    work = _Work(request)
    try:
        counts = work.counts()
    except RefusedError as refused:
        counts = Counts.unknown(str(refused))
        work.troubles.append(refused.trouble)
    return Allocation(counts, tuple(work.troubles))


class _Work:
    """The steps of one allocation, in the launcher's order."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.include = _given(request.include)
        self.exclude = _given(request.exclude)
        self.num_nodes = _number(request.num_nodes)
        self.num_gpus = _number(request.num_gpus)
        self.troubles: list[LaunchTrouble] = []

    def counts(self) -> Counts:
        self._include_visible_devices()
        self._check_options()
        for fact in (self.include, self.exclude):
            if isinstance(fact, Unknown):
                return Counts.unknown(fact.reason)
        pool = self._pool()
        hosts = self._select(pool)
        nodes = self._nodes(hosts)
        if self.num_nodes > 0:
            hosts = dict(list(hosts.items())[: self.num_nodes])
        hosts = self._resize(hosts)
        if isinstance(nodes, Known):
            hosts = self._by_backend(pool, hosts)
        self._warn_of_visible_devices(hosts)
        return self._count(hosts, nodes)

    @property
    def selection(self) -> Known | None:
        """The option that picks hosts and slots."""
        return next((f for f in (self.include, self.exclude) if isinstance(f, Known)), None)

    def _include_visible_devices(self) -> None:
        """On this machine alone, and without other wishes, visible devices are included."""
        visible = self.request.visible
        if visible is None or visible.value == "" or self.request.hostfile is not None:
            return
        if self.include or self.exclude or self.num_nodes > 1 or self.num_gpus > 0:
            return
        if not visible.known:
            self.include = Unknown(hidden_reason(visible))
        else:
            origin = visible.origin(OriginKind.ENVIRONMENT)
            self.include = Known(f"{_LOCAL}:{visible.value}", origin)

    def _check_options(self) -> None:
        request = self.request
        if self.selection and (self.num_nodes >= 0 or self.num_gpus >= 0):
            count = request.num_nodes if self.num_nodes >= 0 else request.num_gpus
            given = self.selection.origin.argument
            message = f"a number of nodes or devices cannot be combined with {given}"
            raise RefusedError("filter-with-counts", message, self._at(count))
        if request.hostfile is None and self.num_nodes > 1:
            message = f"{self.num_nodes} nodes are asked for, but without a hostfile there is one"
            raise RefusedError("num-nodes-without-hostfile", message, self._at(request.num_nodes))
        if isinstance(self.include, Known) and isinstance(self.exclude, Known):
            message = "hosts can be included or excluded, not both"
            raise RefusedError("include-and-exclude", message, self._at(self.exclude))

    def _pool(self) -> Hosts:
        if self.request.hostfile is not None:
            return {host: Slots(slots) for host, slots in self.request.hostfile.slots.items()}
        devices = self.request.devices
        return {_LOCAL: Slots(devices.value if devices else None)}

    def _select(self, pool: Hosts) -> Hosts:
        if self.selection is None:
            return pool
        at = self._at(self.selection)
        return select(pool, self.selection.value, at, including=self.selection is self.include)

    def _nodes(self, hosts: Hosts) -> Fact:
        hostfile, asked = self.request.hostfile, self.request.num_nodes
        if isinstance(asked, Unknown):
            return asked
        if isinstance(asked, Known) and asked.value > 0:
            if asked.value > len(hosts):
                has = f"the hostfile has {counted(len(hosts), 'host')}"
                message = f"{asked.value} nodes are asked for, but {has}: no more are used"
                self._warn("num-nodes-above-hosts", message, self._at(asked))
            return Known(min(asked.value, len(hosts)), asked.origin)
        if hostfile is None:
            return default(1, "deepspeed without a hostfile")
        if self.selection is not None:
            return Known(len(hosts), self.selection.origin)
        return Known(len(hosts), Origin(OriginKind.HOSTFILE, hostfile.location))

    def _resize(self, hosts: Hosts) -> Hosts:
        """``--num_gpus N`` takes the slots 0 to N-1 of every host, whether it has them or not."""
        if self.num_gpus <= 0:
            return hosts
        for host, slots in hosts.items():
            if slots.total is not None and self.num_gpus > slots.total:
                has = f"{host}, which has {counted(slots.total, 'slot')}"
                message = f"{counted(self.num_gpus, 'process')} are started on {has}"
                self._warn("gpus-above-slots", message, self._at(self.request.num_gpus))
                break
        return {host: Slots(self.num_gpus) for host in hosts}

    def _by_backend(self, pool: Hosts, hosts: Hosts) -> Hosts:
        """What the multi-node back end makes of the hosts."""
        request, backend = self.request, self.request.backend
        at = request.backend_location or request.location
        if backend == "slurm":
            _check_slurm(hosts, at)
        if request.no_ssh:
            rank = _number(request.node_rank)
            if not isinstance(request.node_rank, Unknown) and not 0 <= rank < len(hosts):
                ranks = "0" if len(hosts) == 1 else f"0 to {len(hosts) - 1}"
                given = f", not {rank}" if isinstance(request.node_rank, Known) else ""
                message = f"without ssh each machine needs its own --node_rank, {ranks}{given}"
                raise RefusedError("node-rank-out-of-range", message, self._at(request.node_rank))
            return hosts
        if not request.force_multi and len(hosts) == 1:
            return hosts
        if backend not in BACKENDS:
            message = f"there is no launcher {backend!r}; it is one of {', '.join(BACKENDS)}"
            raise RefusedError("unknown-backend", message, at)
        if backend not in _WHOLE_POOL_BACKENDS:
            return hosts
        if self.selection or self.num_nodes != -1 or self.num_gpus != -1:
            message = (
                f"the {backend} launcher takes the whole hostfile and no option that limits it"
            )
            raise RefusedError("backend-refuses-filter", message, at)
        if backend in _EQUAL_SLOTS_BACKENDS and len({slots.count for slots in pool.values()}) > 1:
            message = f"the {backend} launcher needs the same number of slots on every host"
            raise RefusedError("backend-needs-equal-slots", message, at)
        return pool

    def _warn_of_visible_devices(self, hosts: Hosts) -> None:
        """Unless included above, visible devices are dropped; that matters if others are used."""
        visible = self.request.visible
        if visible is None or not visible.value or not visible.known:
            return
        chosen = self.selection
        if chosen is not None and chosen.origin.location == visible.location:
            return
        try:
            wanted = frozenset(int(device) for device in visible.value.split(","))
        except ValueError:
            wanted = frozenset()
        if any(not slots.are(wanted) for slots in hosts.values()):
            message = f"{visible.flag}={visible.value} is dropped: {self._chosen_by(hosts)}"
            self._warn("visible-devices-ignored", message, visible.location)

    def _chosen_by(self, hosts: Hosts) -> str:
        """Who picks the devices instead, and which."""
        chosen = self.selection or (self.request.num_gpus if self.num_gpus > 0 else None)
        who = "the hostfile"
        if isinstance(chosen, Known):
            who = f"{chosen.origin.argument} {chosen.value}"
        devices = list(dict.fromkeys(slots.described for slots in hosts.values()))
        if len(devices) > 1:
            return f"{who} picks the devices of each host"
        return f"{who} takes {devices[0]}{' of each host' if len(hosts) > 1 else ''}"

    def _count(self, hosts: Hosts, nodes: Fact) -> Counts:
        asked = self.request.num_gpus
        if isinstance(asked, Unknown):
            return Counts.of(nodes, asked)
        if isinstance(asked, Known) and asked.value > 0:
            return Counts.of(nodes, asked)
        counts = [slots.count for slots in hosts.values()]
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            return Counts.of(nodes, Unknown(_UNCOUNTED))
        if sum(known) == 0:
            raise RefusedError("nothing-selected", "no slot is left to run on", self._at(None))
        origin = self._origin()
        if len(set(known)) == 1:
            return self._evenly(nodes, Known(known[0], origin), len(known))
        apart = ", ".join(f"{host} {slots.count}" for host, slots in list(hosts.items())[:4])
        per_node = Unknown(f"the hosts start different numbers of processes: {apart}")
        if isinstance(nodes, Unknown):
            return Counts(nodes, per_node, nodes)
        return Counts(nodes, per_node, Known(sum(known), origin))

    def _evenly(self, nodes: Fact, per_node: Known, hosts: int) -> Counts:
        if self.selection is None and isinstance(self.request.num_nodes, Known):
            return Counts.of(nodes, per_node)
        if isinstance(nodes, Unknown):
            return Counts(nodes, per_node, nodes)
        return Counts(nodes, per_node, Known(per_node.value * hosts, per_node.origin))

    def _origin(self) -> Origin:
        """Who says how many processes a host starts, where ``--num_gpus`` does not."""
        if self.selection is not None:
            return self.selection.origin
        if self.request.hostfile is not None:
            return Origin(OriginKind.HOSTFILE, self.request.hostfile.location)
        devices = self.request.devices
        return devices.origin if devices else Origin(OriginKind.DEFAULT, whose="deepspeed")

    def _at(self, fact: Fact | None) -> Location:
        """Where an option stands, else where the launcher is named."""
        location = fact.origin.location if isinstance(fact, Known) else None
        return location or self.request.location

    def _warn(self, kind: TroubleKind, message: str, location: Location) -> None:
        self.troubles.append(LaunchTrouble(kind, message, location, False))


def _given(fact: Fact | None) -> Known | Unknown | None:
    """A filter that says something: an empty one is as good as none."""
    if isinstance(fact, Known) and fact.value == "":
        return None
    return fact if isinstance(fact, Known | Unknown) else None


def _number(fact: Fact | None) -> int:
    """The number of an option, -1 where it is absent or not known."""
    return fact.value if isinstance(fact, Known) else -1


def _check_slurm(hosts: Hosts, at: Location) -> None:
    """``srun`` places tasks by count: it needs leading slots, as many on every host."""
    for host, slots in hosts.items():
        if not slots.leading:
            message = f"the slurm launcher cannot pick slots, as is asked for {host}"
            raise RefusedError("backend-refuses-filter", message, at)
    if len({slots.count for slots in hosts.values()}) > 1:
        message = "the slurm launcher needs the same number of slots on every host"
        raise RefusedError("backend-needs-equal-slots", message, at)
