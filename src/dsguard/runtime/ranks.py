"""What the other ranks are about to do, asked over the store of the rendezvous.

The store is a key-value server beside the training: a rank that never answers costs a time-out
there, where a collective would pair up with the next collective of DeepSpeed, or hang.
"""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dsguard.runtime.windows import Windows

_attached = itertools.count()

_SECONDS_TO_ANSWER = 5.0


def rank_and_world_size() -> tuple[int, int]:
    """This rank and the number of ranks of the running process group; (0, 1) where none runs."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return 0, 1
    return dist.get_rank(), dist.get_world_size()


class Answers(NamedTuple):
    """What came out of a comparison, the same on every rank.

    ``apart`` maps what the ranks do not agree on to what each of them told; ``missing`` ranks
    told nothing in time.
    """

    apart: dict[str, dict[int, Any]]
    missing: tuple[int, ...]


class RankStore:
    """The keys that the guards of one engine share, one guard a rank.

    Guards are matched by the order in which each process attaches them.
    """

    def __init__(self, store: Any, rank: int, world_size: int) -> None:
        self._store = store
        self.rank = rank
        self.world_size = world_size

    @classmethod
    def connect(cls) -> RankStore | None:
        """The store of the running process group; None where there is one rank or no store.

        Raises:
            Exception: whatever the store raises; the caller contains it.
        """
        ordinal = next(_attached)
        import torch.distributed as dist

        if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() < 2:
            return None
        from torch.distributed import distributed_c10d
        from torch.distributed.distributed_c10d import PrefixStore

        find = getattr(distributed_c10d, "_get_default_store", None)
        if find is None:
            return None
        store = PrefixStore(f"dsguard/{ordinal}", find())
        return cls(store, dist.get_rank(), dist.get_world_size())

    def compare(
        self, mine: Mapping[str, Any], seconds: float, judge: Callable[[Answers], None]
    ) -> None:
        """Tell the others, hear what came out after at most ``seconds``, and judge it.

        Rank 0 reads what all have told and leaves the outcome for the others, so that a
        thousand ranks do not read what a thousand ranks have told. It judges first: what it has
        to say is then said before another rank can ask whether it was.
        """
        self._store.set(f"told/{self.rank}", json.dumps(mine))
        if self.rank != 0:
            judge(self._outcome(seconds))
            return
        answers = self._collect(seconds)
        try:
            judge(answers)
        finally:
            self._store.set("answers", json.dumps(answers))

    def _outcome(self, seconds: float) -> Answers:
        # Rank 0 may use up its time before it answers.
        if not self._there(["answers"], seconds + _SECONDS_TO_ANSWER):
            return Answers({}, (0,))
        apart, missing = json.loads(self._store.get("answers"))
        by_rank = {
            name: {int(rank): value for rank, value in told.items()} for name, told in apart.items()
        }
        return Answers(by_rank, tuple(missing))

    def _collect(self, seconds: float) -> Answers:
        keys = [f"told/{rank}" for rank in range(self.world_size)]
        self._there(keys, seconds)
        told: dict[int, Mapping[str, Any]] = {}
        missing: list[int] = []
        for rank, key in enumerate(keys):
            if self._store.check([key]):
                told[rank] = json.loads(self._store.get(key))
            else:
                missing.append(rank)
        names = {name: None for values in told.values() for name in values}
        by_name = {
            name: {rank: values.get(name) for rank, values in told.items()} for name in names
        }
        return Answers(
            {name: values for name, values in by_name.items() if _differ(values)},
            tuple(missing),
        )

    def _there(self, keys: list[str], seconds: float) -> bool:
        try:
            self._store.wait(keys, timedelta(seconds=seconds))
        except Exception:  # DistStoreError, or RuntimeError in older releases of PyTorch
            return False
        return True

    def mark(self, what: str) -> None:
        """Leave a mark that the other ranks can see."""
        self._store.set(what, "1")

    def marked(self, what: str) -> bool:
        """Whether some rank has left this mark; never waits."""
        return bool(self._store.check([what]))


def _differ(values: Mapping[int, Any]) -> bool:
    first, *others = values.values()
    return any(value != first for value in others)


class OneVoice:
    """Which rank says a finding: rank 0, and another one only what rank 0 does not say.

    Another rank waits until its next optimizer step before it decides that rank 0 has nothing
    of the kind. A finding of one rank is thus said by that rank, with its number.
    """

    def __init__(self, store: RankStore) -> None:
        self._store = store
        self._waiting: list[tuple[str, Callable[[str], None]]] = []

    @property
    def waits(self) -> bool:
        """Whether something was kept."""
        return bool(self._waiting)

    def say(self, kind: tuple[Any, ...], speak: Callable[[str], None]) -> None:
        """Say it, or keep it until :meth:`settle`."""
        key = "said/" + json.dumps(kind)
        if self._store.rank == 0:
            speak("")
            with suppress(Exception):  # it is said; at worst another rank says it too
                self._store.mark(key)
        else:
            self._waiting.append((key, speak))

    def settle(self) -> None:
        """Say what rank 0 has not said by now."""
        waiting, self._waiting = self._waiting, []
        for key, speak in waiting:
            said = False
            with suppress(Exception):  # a store that is gone cannot tell; better said twice
                said = self._store.marked(key)
            if not said:
                speak(f"[rank {self._store.rank}] ")


def device_of_collectives() -> str:
    """Where the running process group takes tensors."""
    import torch.distributed as dist

    running = dist.is_available() and dist.is_initialized()
    return "cuda" if running and dist.get_backend() == "nccl" else "cpu"


def all_ranks(values: Any) -> Any:
    """A tensor of every rank, on the CPU, with the ranks as its first dimension.

    A collective that all ranks have to enter with a tensor of one shape, which lies where
    :func:`device_of_collectives` says.
    """
    import torch
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return values.cpu().unsqueeze(0)
    gathered = [torch.empty_like(values) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, values)
    return torch.stack(gathered).cpu()


def counts_apart(windows: Windows) -> dict[str, dict[int, int]]:
    """Counts that differ between the ranks, by rank; a collective that all ranks have to enter."""
    import torch

    names = ("micro_batches", "optimizer_steps", "skipped_steps")
    mine = [getattr(windows, name) for name in names]
    counts = torch.tensor(mine, dtype=torch.int64, device=device_of_collectives())
    by_rank = all_ranks(counts).tolist()
    by_name = {
        name: {rank: counted[i] for rank, counted in enumerate(by_rank)}
        for i, name in enumerate(names)
    }
    return {name: values for name, values in by_name.items() if _differ(values)}
