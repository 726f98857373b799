"""The typed description of a training loop, which the rules of the script family judge."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field

from dsguard.script.declaration import Constant, FromArgument, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.model.source import Location


class Maker(str, Enum):
    """Whose call makes an engine."""

    DEEPSPEED = "deepspeed.initialize"
    ACCELERATE = "accelerator.prepare"


class FromEngine(Struct, frozen=True):
    """What the engine itself says, as in ``engine.gradient_accumulation_steps()``."""

    name: str


class FromConfig(Struct, frozen=True):
    """What a config that the script loads says under a key; ``of`` is the dict it is taken from.

    ``key`` joins the names that lead there with dots.
    """

    key: str
    of: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FromConfig) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def path(self) -> tuple[str, ...]:
        """The keys that lead there."""
        return tuple(self.key.split("."))


class Counted(Struct, frozen=True):
    """A number that is computed from how many there are: ``what`` is ``devices`` of this machine
    (``torch.cuda.device_count()``) or ``ranks`` of the job (``get_world_size()``).
    """

    what: str


Amount: TypeAlias = Constant | FromArgument | FromEngine | FromConfig | Unreadable
"""What can be said of a number in the loop."""


class Given(Struct, frozen=True):
    """A value that the script writes somewhere; ``text`` is the expression on one line."""

    value: Amount
    location: Location
    text: str


class Meaning(str, Enum):
    """What a condition is about.

    ``EVERY_NTH``: a counter modulo an amount. ``BOUNDARY``: the engine's own
    ``is_gradient_accumulation_boundary()``, or Accelerate's ``sync_gradients``. ``FIRST_RANK``:
    one rank, or one of every node. ``ABOVE_ONE``: an amount is larger than 1. ``OTHER`` is any
    other test.
    """

    EVERY_NTH = "every n-th time"
    BOUNDARY = "at the boundary"
    FIRST_RANK = "on one rank"
    ABOVE_ONE = "above one"
    OTHER = "other"


class Condition(Struct, frozen=True):
    """A test; ``holds`` is False in the branch where it is not met."""

    meaning: Meaning
    holds: bool
    location: Location
    text: str
    amount: Given | None = None


class Around(str, Enum):
    """What kind of block stands around a statement."""

    LOOP = "loop"
    BRANCH = "branch"
    CONTEXT = "context"


class Context(str, Enum):
    """What a ``with`` block does, as far as it matters here."""

    NO_SYNC = "no_sync"
    COALESCE = "coalesce_grad_reduction"
    ACCUMULATE = "accumulate"
    GATHERED = "GatheredParameters"
    OTHER = "other"


class Block(Struct, frozen=True, eq=False):
    """A loop, a branch or a ``with`` block around a statement; each one is itself only.

    ``conditions`` all hold in a branch. ``split`` is shared by the branches of one ``if``, of
    which a run takes one. ``loader`` is what a loop takes its batches from; ``is_prepared`` says
    that this went through ``accelerator.prepare``, ``of_batch`` that a loop goes over the parts of
    one batch.
    """

    around: Around
    location: Location
    conditions: tuple[Condition, ...] = ()
    split: object = None
    loader: Loader | None = None
    is_prepared: bool = False
    of_batch: bool = False
    context: Context = Context.OTHER


class Loader(Struct, frozen=True, eq=False):
    """A ``DataLoader(…)`` of PyTorch that the script makes.

    ``batch_size`` is None where ``batch_sampler`` or the dataset decides. ``sampler`` says whether
    a sampler is passed, None where that is not known. ``drop_last`` is None where it is not known.
    ``shards`` says whether the dataset may already be one rank's part.
    """

    location: Location
    batch_size: Given | None
    sampler: bool | None
    drop_last: bool | None
    shards: bool


class Config(Struct, frozen=True, eq=False):
    """The DeepSpeed config that a call is given.

    ``path`` is a constant file name or the argument that holds one. ``literal`` is a dict that is
    written in the script. Neither is set where the value is only known when the script runs;
    ``reason`` then says why. ``changes`` are what the script does to a config that it loads from
    the file, each with the keys that lead there; None where that is not known.
    """

    location: Location
    path: Constant | FromArgument | None = None
    literal: DictLiteral | None = None
    reason: str = ""
    changes: tuple[tuple[tuple[str, ...], DictEntry], ...] | None = ()


class DictEntry(Struct, frozen=True, eq=False):
    """One ``key: value`` of a dict in the script, whichever statement wrote it last.

    ``perhaps`` says that it is only written under a condition.
    """

    key: str
    key_location: Location
    value: DictValue
    location: Location
    text: str
    perhaps: bool = False


class DictLiteral(Struct, frozen=True, eq=False):
    """A dict that the script writes, with what later statements plainly changed."""

    location: Location
    entries: tuple[DictEntry, ...]

    def get(self, key: str) -> DictEntry | None:
        """The entry of a key, None where there is none."""
        return next((entry for entry in self.entries if entry.key == key), None)


DictValue: TypeAlias = "Amount | Counted | DictLiteral | tuple[DictEntry, ...]"
"""A value in such a dict: a tuple is a list, whose entries have empty keys."""


class Engine(Struct, eq=False):
    """An engine of the script.

    ``name`` is what the script calls it. ``passed`` says where each argument of the call stands,
    ``made_by`` the dotted name of the call that plainly makes it, such as ``torch.optim.AdamW``;
    ``complete`` is False where ``**`` passes more. ``targets`` are the names that the result is
    unpacked into, None where it is not unpacked on the spot. ``blocks`` stand around the call.
    ``has_scheduler`` says that it plainly gets one, and not perhaps None. ``stages`` is the
    ``num_stages`` of a pipeline.
    """

    name: str
    maker: Maker
    location: Location
    passed: Mapping[str, Location]
    blocks: tuple[Block, ...]
    config: Config | None = None
    targets: tuple[str, ...] | None = None
    targets_location: Location | None = None
    is_pipeline: bool = False
    stages: Given | None = None
    has_scheduler: bool = False
    complete: bool = True
    made_by: Mapping[str, str] = field(default_factory=dict)


class Does(str, Enum):
    """What a statement does."""

    FORWARD = "forward"
    BACKWARD = "backward"
    LOSS_BACKWARD = "loss.backward"
    STEP = "step"
    TRAIN_BATCH = "train_batch"
    ZERO_GRAD = "zero_grad"
    OPTIMIZER_STEP = "optimizer.step"
    OPTIMIZER_ZERO_GRAD = "optimizer.zero_grad"
    SCHEDULER_STEP = "scheduler.step"
    CLIP = "clip"
    NO_SYNC = "no_sync"
    TRAIN_MODE = "train"
    EVAL_MODE = "eval"
    SAVE_CHECKPOINT = "save_checkpoint"
    SAVE_WEIGHTS = "save weights"
    SET_BOUNDARY = "set_gradient_accumulation_boundary"
    JOIN_UNEVEN = "join_uneven_inputs"
    ACCUMULATE = "accumulate"
    ESCAPE = "escape"
    """The engine is handed to code that is not read."""


class Whose(str, Enum):
    """Which object a call went to, where an engine has several of a kind."""

    ENGINE = "engine"
    MODULE = "module"
    CLIENT = "client"
    """The optimizer or scheduler that the script made and handed to the engine."""
    RETURNED = "returned"
    """The one that ``deepspeed.initialize`` gave back."""
    OWN = "own"
    """A scheduler on the engine's optimizer that the engine does not know."""


class Loss(Struct, frozen=True, eq=False):
    """What is backpropagated: the engine's output, and what it was divided by on the way.

    ``divisions`` are in order; each comes with the blocks that stood around it. ``is_sum`` says
    that several terms were added before a division.
    """

    divisions: tuple[tuple[Given, tuple[Block, ...]], ...] = ()
    is_sum: bool = False


class Action(Struct, frozen=True, eq=False):
    """One thing that is done with an engine, at one place of the script.

    ``blocks`` stand around it, outermost first, those of the functions that call it included.
    ``said`` is the call as it is written. ``arguments`` are what is passed by name.
    """

    does: Does
    engine: Engine
    location: Location
    blocks: tuple[Block, ...]
    said: str
    whose: Whose = Whose.ENGINE
    loss: Loss | None = None
    loader: Loader | None = None
    arguments: Mapping[str, Given] = field(default_factory=dict)


class Wrapping(Struct, frozen=True, eq=False):
    """A model that is loaded in one call: ``from_pretrained(…, device_map="auto")``."""

    name: str
    location: Location
    passed: Mapping[str, Given]
    order: int


class Loop(Struct, frozen=True):
    """Everything that the script plainly does with its engines, in the order of the code.

    ``configs`` are those that engines, ``TrainingArguments``, plugins and strategies are given.
    ``loads`` are calls of ``from_pretrained``; ``set_up`` is the order number of the first call
    that tells transformers about ZeRO (``TrainingArguments`` or ``HfDeepSpeedConfig``), None where
    there is none.
    """

    engines: tuple[Engine, ...] = ()
    actions: tuple[Action, ...] = ()
    configs: tuple[Config, ...] = ()
    loads: tuple[Wrapping, ...] = ()
    set_up: tuple[int, Location] | None = None
