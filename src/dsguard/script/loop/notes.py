"""What has been noted of a training loop so far, and the blocks that stand around at the moment."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dsguard.script.declaration import Constant, FromArgument, Unreadable
from dsguard.script.loop.description import (
    Action,
    Around,
    Block,
    Condition,
    Config,
    Does,
    Engine,
    FromConfig,
    FromEngine,
    Given,
    Loader,
    Loop,
    Loss,
    Maker,
    Whose,
    Wrapping,
)
from dsguard.script.loop.strays import with_strays, written_settings
from dsguard.script.loop.values import Derived, Dict, EngineValue, Made, ModuleValue, Role

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Mapping

    from dsguard.model.source import Location
    from dsguard.script.module import LocalModule

_MOST_ACTIONS = 500
"""Rules compare each action with every other one; a loop that anybody wrote has some dozen."""

_MOST_BLOCKS = 10_000
"""And they compare the blocks around them, and around the divisions of a loss."""

_MOST_LOOKED = 200_000
"""Values of dicts and tuples that calls which are not read get, call by call."""


class Notes:
    """Collects the engines and actions of one script.

    ``blocks`` stand around the statement that is followed now, outermost first. ``loaded`` are
    the dicts that were read from files.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.engines: list[Engine] = []
        self.loaded: list[Dict] = []
        self._actions: list[Action] = []
        self._around = 0
        self._configs: list[Config] = []
        self._dicts: set[int] = set()
        """The ``id`` of those configs that the script holds as a dict."""
        self._strays: dict[str, Location] = {}
        self._loads: list[Wrapping] = []
        self._set_up: tuple[int, Location] | None = None
        self._order = 0
        self._known: dict[int, tuple[Any, Role | ModuleValue]] = {}
        self._held: dict[str, list[Dict]] = {}
        self._looked = 0

    @contextmanager
    def inside(self, *blocks: Block) -> Iterator[None]:
        """Everything that is noted meanwhile stands in these blocks."""
        before = len(self.blocks)
        self.blocks.extend(blocks)
        try:
            yield
        finally:
            del self.blocks[before:]

    def branch(self, location: Location, conditions: tuple[Condition, ...], split: object) -> Block:
        """A branch of an ``if``."""
        return Block(Around.BRANCH, location, conditions, split)

    def act(
        self,
        does: Does,
        engine: Engine | None,
        node: ast.AST,
        module: LocalModule,
        *,
        whose: Whose = Whose.ENGINE,
        loss: Loss | None = None,
        loader: Loader | None = None,
        arguments: Mapping[str, Given] | None = None,
    ) -> None:
        """Note what a statement does; without an engine it is about nothing."""
        if engine is None or len(self._actions) >= _MOST_ACTIONS or self._around > _MOST_BLOCKS:
            return
        divisions = loss.divisions if loss is not None else ()
        self._around += len(self.blocks) + sum(1 + len(blocks) for _, blocks in divisions)
        if self._around > _MOST_BLOCKS:
            return
        self._actions.append(
            Action(
                does,
                engine,
                module.locate(node),
                tuple(self.blocks),
                module.places.excerpt(node),
                whose,
                loss,
                loader,
                arguments or {},
            )
        )

    def add_engine(self, engine: Engine) -> Engine:
        """Note an engine that the script makes."""
        self.engines.append(engine)
        return engine

    def add_config(self, config: Config, *, is_dict: bool = False) -> Config:
        """Note a config that something is given; ``is_dict`` if the script holds it as a dict."""
        self._configs.append(config)
        if is_dict:
            self._dicts.add(id(config))
        return config

    def write_unseen(self, target: ast.expr, module: LocalModule) -> None:
        """Note a statement that writes into something unknown, which may be a config."""
        for key in written_settings(target):
            self._strays.setdefault(key, module.locate(target))

    def load(self, name: str, location: Location, passed: Mapping[str, Given]) -> None:
        """Note a model that ``from_pretrained`` loads."""
        self._order += 1
        self._loads.append(Wrapping(name, location, passed, self._order))

    def set_up(self, location: Location) -> None:
        """Note that transformers is told about ZeRO."""
        self._order += 1
        self._set_up = self._set_up or (self._order, location)

    def belongs(self, value: Any, to: Role | ModuleValue) -> None:
        """Note that an object was handed to an engine."""
        if not isinstance(value, (Constant, Unreadable, FromArgument, EngineValue)):
            self._known[id(value)] = (value, to)

    def owner(self, value: Any) -> Role | ModuleValue | None:
        """What an object is to the engine that it was handed to."""
        if isinstance(value, (Role, ModuleValue)):
            return value
        found = self._known.get(id(value))
        return found[1] if found is not None else None

    def may_look(self, count: int) -> bool:
        """Whether so many more values may be searched for dicts; long scripts come to an end."""
        if self._looked + count > _MOST_LOOKED:
            return False
        self._looked += count
        return True

    def hold(self, name: str, value: Dict) -> None:
        """Note a dict that ``args.name`` stands for from here on, too."""
        self._held.setdefault(name, []).append(value)

    def lose_held(self, reason: str, name: str | None = None) -> None:
        """Note that the dicts at ``args.name`` may be changed; without a name, at any."""
        for held in [name] if name is not None else list(self._held):
            for value in self._held.pop(held, ()):
                value.lost = reason

    def optimizer_of(self, scheduler: Made) -> Engine | None:
        """The engine whose optimizer a scheduler was made for."""
        optimizer = scheduler.keywords.get("optimizer")
        if optimizer is None and scheduler.positional:
            optimizer = next(
                (value for value in scheduler.positional if isinstance(self.owner(value), Role)),
                None,
            )
        owner = self.owner(optimizer)
        return owner.engine if isinstance(owner, Role) and owner.what == "optimizer" else None

    @property
    def only_prepared(self) -> Engine | None:
        """The engine of ``accelerator.prepare``, if there is exactly one."""
        found = [engine for engine in self.engines if engine.maker is Maker.ACCELERATE]
        return found[0] if len(found) == 1 else None

    def loss(self, value: Any) -> Loss | None:
        """The loss that a value is, None where it does not come from an engine."""
        return Loss(value.divisions, value.is_sum) if isinstance(value, Derived) else None

    def loop(self) -> Loop:
        """Everything noted."""
        if self._strays:
            known = {
                id(config): with_strays(config, self._strays)
                if id(config) in self._dicts
                else config
                for config in self._configs
            }
            for engine in self.engines:
                engine.config = known.get(id(engine.config), engine.config)
            self._configs = list(known.values())
        return Loop(
            tuple(self.engines),
            tuple(self._actions),
            tuple(self._configs),
            tuple(self._loads),
            self._set_up,
        )


def given(value: Any, node: ast.AST, module: LocalModule) -> Given:
    """A value as a rule sees it."""
    text = module.places.excerpt(node)
    if not isinstance(value, (Constant, FromArgument, FromEngine, FromConfig)):
        value = Unreadable(f"`{text}` is only known when the script runs")
    return Given(value, module.locate(node), text)
