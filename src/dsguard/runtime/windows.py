"""The state machine: which micro-batches belong to which optimizer step.

A *window* is everything between two optimizer steps. It knows nothing of PyTorch, DeepSpeed or
rules: an adapter tells it what happened, and rules read what it counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import msgspec

_KINDS_KEPT = 64
"""How many different values are told apart; a run with more is not described by them."""


class Histogram(Mapping[int, int]):
    """How often each value was seen, in bounded memory.

    ``others`` counts the values that came after the first 64 different ones.
    """

    def __init__(self, counts: Mapping[int, int] | None = None, others: int = 0) -> None:
        self._counts: dict[int, int] = dict(counts or {})
        self.others = others

    def add(self, value: int, times: int = 1) -> None:
        """Count this value so many times more."""
        if value in self._counts:
            self._counts[value] += times
        elif len(self._counts) < _KINDS_KEPT:
            self._counts[value] = times
        else:
            self.others += times

    def __getitem__(self, value: int) -> int:
        return self._counts[value]

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._counts))

    def __len__(self) -> int:
        return len(self._counts)


class Window(msgspec.Struct, frozen=True):
    """A closed window: what one optimizer step was made of.

    ``number`` counts optimizer steps from 1, skipped ones included.
    ``micro_batches`` are backward passes on this rank. ``expected`` is the accumulation that
    held when the window was opened. ``samples`` of these passes on this rank, None where the
    batches did not show their size or it is not known which of them were trained on.
    ``unsynchronised`` backward passes ran under ``no_sync()`` or
    ``coalesce_grad_reduction()``. ``applied`` is False where the step was skipped (overflow).
    ``expected`` is None where nobody has said how many there should be.
    ``alike`` is how many windows in a row, this one included, had as many micro-batches.
    ``tokens`` and ``tokens_unpadded`` on this rank, None where they were not counted.
    """

    number: int
    micro_batches: int
    expected: int | None
    samples: int | None
    unsynchronised: int
    applied: bool
    alike: int
    tokens: int | None = None
    tokens_unpadded: int | None = None


_Tokens: TypeAlias = tuple[int | None, int | None]
_Before: TypeAlias = tuple[int, int, bool, int | None, _Tokens | None]


@dataclass(eq=False, slots=True)
class Windows:
    """Counts of one run on this rank; see :class:`Window` for the units.

    What a forward has seen belongs to the backward pass that comes next. Several forwards before
    one pass are a loss of them all, if it is seen to go through them or the pass before had as
    many; else some of them may have been left out, as where a loss is no number, and the samples
    of the window are unknown.
    """

    micro_batches: int = 0
    optimizer_steps: int = 0
    skipped_steps: int = 0
    skipped_in_a_row: int = 0
    sizes: Histogram = field(default_factory=Histogram)
    samples: Histogram = field(default_factory=Histogram)
    batches: set[int] = field(default_factory=set)
    """Sizes that batches of training forwards had, the first 64 different ones."""
    alike_batches: int = 0
    """Training forwards in a row, the last one included, with a batch of the same size."""
    open: int = 0
    """Backward passes since the last optimizer step."""
    since_step: int = 0
    """Backward passes since the last call of ``engine.step()``."""
    forwards_since_step: int = 0
    """Training forwards since the last call of ``engine.step()``."""
    forwards: int = 0
    """Calls of the engine's forward since the last optimizer step, evaluation included."""
    unsynchronised: int = 0
    unsynchronised_since_step: int = 0
    synchronised_last: bool = True
    """Whether the last backward pass has synchronised the gradients."""
    expected: int | None = 1
    """The accumulation that held when the open window was opened."""
    _samples: int | None = 0
    """Of the training forwards of the open window."""
    _tokens: _Tokens | None = None
    _trained_samples: int | None = 0
    """Of those that a backward pass has followed."""
    _trained_tokens: _Tokens | None = None
    _known: bool = True
    """Whether every one that a backward pass has followed was trained on."""
    pending: int = 0
    """Training forwards that no backward pass has followed yet."""
    _usual: int = 1
    """Training forwards before the last backward pass that had any."""
    _before: _Before | None = None
    """What the last backward pass has found, in case that it fails."""
    _joined: int = 1
    """Forwards that the last backward pass is known to have gone through."""
    _failed: bool = False
    _last_size: int = 0
    _alike: int = 0
    _last_batch: int | None = None

    def forward(self, size: int | None) -> None:
        """A training forward of this many samples (None: the batch does not show it)."""
        self.forwards += 1
        self.forwards_since_step += 1
        if self._failed:
            self._abandon()
        self.pending += 1
        if size == self._last_batch:
            self.alike_batches += 1
        else:
            self.alike_batches = 1
            self._last_batch = size
            if size is not None and len(self.batches) < _KINDS_KEPT:
                self.batches.add(size)
        samples = self._samples
        if samples is not None:
            self._samples = None if size is None else samples + size

    def forward_failed(self) -> None:
        """The last training forward has raised: no backward pass will follow it."""
        self.forwards -= 1
        self.forwards_since_step -= 1
        self.pending -= 1
        if self.pending:  # a loss of several: with or without the others
            self._samples, self._tokens = None, (None, None)
        else:
            self._abandon()

    def _abandon(self) -> None:
        self._failed, self.pending = False, 0
        self._samples, self._tokens = self._trained_samples, self._trained_tokens

    def tokens(self, total: int | None, unpadded: int | None) -> None:
        """The tokens of a training forward, with and without padding (None: not known)."""
        self._tokens = _sum(self._tokens, (total, unpadded))

    def forward_without_gradient(self) -> None:
        """A forward of evaluation or generation: nothing to count but that it happened."""
        self.forwards += 1

    def backward(self, accumulation: int | None, synchronised: bool = True) -> None:
        """A backward pass while the engine accumulates over this many."""
        if self.open == 0:
            self.expected = accumulation
        pending, usual = self.pending, self._usual
        self._before = pending, usual, self._known, self._trained_samples, self._trained_tokens
        self._joined = 1
        if pending:
            if pending != usual:
                self._known = self._known and pending == 1
                self._usual = pending
            self._trained_samples, self._trained_tokens = self._samples, self._tokens
            self.pending = 0
        self.micro_batches += 1
        self.open += 1
        self.since_step += 1
        if not synchronised:
            self.unsynchronised += 1
            self.unsynchronised_since_step += 1
        self.synchronised_last = synchronised

    def backward_joined(self) -> None:
        """The last backward pass has come to another one of the forwards before it."""
        self._joined += 1
        if self._before is not None and self._joined == self._before[0]:
            self._known = self._before[2]  # it was all of them

    def backward_failed(self) -> None:
        """The last backward pass has raised: it is none, unless it is tried once more."""
        if self._before is None:
            return
        pending, usual, known, samples, tokens = self._before
        self.pending, self._usual, self._known = pending, usual, known
        self._trained_samples, self._trained_tokens = samples, tokens
        self._before = None
        self._failed = True
        self.micro_batches -= 1
        self.open -= 1
        self.since_step -= 1
        if not self.synchronised_last:
            self.unsynchronised -= 1
            self.unsynchronised_since_step -= 1

    def backward_again(self, synchronised: bool) -> None:
        """Another backward pass through a micro-batch that is counted already."""
        self.synchronised_last = synchronised

    def step_returned(self) -> None:
        """``engine.step()`` has returned."""
        self.since_step = 0
        self.forwards_since_step = 0
        self.unsynchronised_since_step = 0

    def optimizer_step(self, applied: bool) -> Window:
        """The optimizer stepped, or skipped the step; closes the window."""
        size = self.open
        self._alike = self._alike + 1 if size == self._last_size else 1
        self._last_size = size
        samples = self._trained_samples if self._known else None
        tokens, unpadded = (self._known and self._trained_tokens) or (None, None)
        self.optimizer_steps += 1
        window = Window(
            self.optimizer_steps,
            size,
            self.expected,
            samples,
            self.unsynchronised,
            applied,
            self._alike,
            tokens,
            unpadded,
        )
        if applied:
            self.skipped_in_a_row = 0
        else:
            self.skipped_steps += 1
            self.skipped_in_a_row += 1
        self.sizes.add(size)
        if samples:
            self.samples.add(samples)
        self.reopen()
        return window

    def repeat(self, times: int, micro_batches: int, samples: int) -> None:
        """So many more windows just like the one that has closed: each batch was of one size."""
        self.micro_batches += times * micro_batches
        self.alike_batches += times * micro_batches
        self.optimizer_steps += times
        self._alike += times
        self.sizes.add(micro_batches, times)
        self.samples.add(samples, times)

    def reopen(self, pending: int = 0, accumulation: int | None = 1) -> None:
        """Forget the open window; ``pending`` steps of it the engine counts all the same."""
        self.open = pending
        self.expected = accumulation
        if self.pending:
            self._samples = _less(self._samples, self._trained_samples)
            self._tokens = self._tokens and _minus(self._tokens, self._trained_tokens or (0, 0))
        else:
            self._samples, self._tokens = 0, None
        self._trained_samples, self._trained_tokens = 0, None
        self._known = not pending
        self._before = None
        self.forwards = 0
        self.unsynchronised = 0

    def copy(self) -> Windows:
        """One with these counts that goes its own way."""
        return replace(
            self,
            sizes=Histogram(self.sizes, self.sizes.others),
            samples=Histogram(self.samples, self.samples.others),
            batches=set(self.batches),
        )

    def state_dict(self) -> dict[str, Any]:
        """The totals, for a checkpoint; an open window is not carried, as its gradients are not."""
        return {
            "micro_batches": self.micro_batches,
            "optimizer_steps": self.optimizer_steps,
            "skipped_steps": self.skipped_steps,
            "sizes": dict(self.sizes),
            "sizes_others": self.sizes.others,
            "samples": dict(self.samples),
            "samples_others": self.samples.others,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the totals of :meth:`state_dict` over; the open window stays as it is."""
        self.micro_batches = int(state["micro_batches"])
        self.optimizer_steps = int(state["optimizer_steps"])
        self.skipped_steps = int(state["skipped_steps"])
        self.sizes = Histogram(_whole(state["sizes"]), int(state["sizes_others"]))
        self.samples = Histogram(_whole(state["samples"]), int(state["samples_others"]))


def _sum(some: _Tokens | None, more: _Tokens) -> _Tokens:
    """The sums, None where a part is not known."""
    if some is None:
        return more
    total, unpadded = some
    return (
        None if total is None or more[0] is None else total + more[0],
        None if unpadded is None or more[1] is None else unpadded + more[1],
    )


def _minus(some: _Tokens, less: _Tokens) -> _Tokens:
    return _less(some[0], less[0]), _less(some[1], less[1])


def _less(some: int | None, less: int | None) -> int | None:
    """The difference, None where a part is not known."""
    return None if some is None or less is None else some - less


def _whole(counts: Mapping[Any, Any]) -> dict[int, int]:
    # A checkpoint kept as JSON turns the keys into text.
    return {int(value): int(count) for value, count in counts.items()}
