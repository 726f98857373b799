"""Attributes and methods of engines, optimizers, losses and the like."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dsguard.script.declaration import Constant
from dsguard.script.loop.calls import flowing, opened, turns, variable
from dsguard.script.loop.description import (
    Condition,
    Context,
    Does,
    Engine,
    FromConfig,
    FromEngine,
    Given,
    Maker,
    Meaning,
    Whose,
)
from dsguard.script.loop.dicts import DICT_READS, keyword_entries, merge
from dsguard.script.loop.escape import lose_dicts
from dsguard.script.loop.notes import Notes, given
from dsguard.script.loop.values import (
    Accelerator,
    Batch,
    Call,
    Derived,
    Dict,
    EngineValue,
    Made,
    Manager,
    ModuleValue,
    Opened,
    Rank,
    Role,
    Test,
    Turns,
)
from dsguard.script.objects import External, Items

if TYPE_CHECKING:
    import ast

    from dsguard.script.arguments import Arguments
    from dsguard.script.module import LocalModule

_ENGINE_DOES = {
    "step": Does.STEP,
    "zero_grad": Does.ZERO_GRAD,
    "train": Does.TRAIN_MODE,
    "eval": Does.EVAL_MODE,
    "save_checkpoint": Does.SAVE_CHECKPOINT,
    "set_gradient_accumulation_boundary": Does.SET_BOUNDARY,
    "train_batch": Does.TRAIN_BATCH,
}
_COUNTS = frozenset(
    {
        "gradient_accumulation_steps",
        "train_micro_batch_size_per_gpu",
        "train_batch_size",
    }
)
_ENGINE_RANKS = frozenset({"global_rank", "local_rank"})
_FIRST_RANK_NAMES = (
    r"_?(?:is_)?(?:world_process_zero|global_zero|main_process|local_main_process|rank_?(?:0|zero)"
    r"|local_process_zero|main_rank|master_process|main|master)(?:_process)?"
)
_SCHEDULERS = r"(?i)lr_scheduler\.|schedul"
_PART = frozenset({"shard", "filter", "select", "skip", "take", "split_by_node"})


def last_name(node: ast.expr) -> str:
    """The name that an expression ends in: ``b`` of ``a.b``, empty where it is none."""
    return str(getattr(node, "id", "") or getattr(node, "attr", ""))


def is_first_rank_name(name: str) -> bool:
    """Whether a function or attribute of this name asks whether this is the first process."""
    return re.fullmatch(_FIRST_RANK_NAMES, name.lower()) is not None


class Methods:
    """What attributes and methods of a loop's values are, and what calling them does."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def attribute(self, value: Any, name: str) -> Any:
        """``value.name``, None where the value is none of a loop or says nothing of it."""
        if isinstance(value, EngineValue):
            return self._of_engine(value, name)
        if isinstance(value, Accelerator):
            if name == "gradient_accumulation_steps":
                return FromEngine(name)
            return Rank() if name.endswith("process_index") else Call(value, name)
        if isinstance(value, Derived):
            return replace(value, method=name)
        if isinstance(value, Batch):
            return value
        if isinstance(value, (ModuleValue, Role, Dict, Turns, Made, FromConfig, Opened)):
            return Call(self._notes.owner(value) or value, name)
        owner = self._notes.owner(value)
        return Call(owner, name) if isinstance(owner, ModuleValue) else None

    def test(self, value: Any, name: str, node: ast.expr, module: LocalModule) -> Test | None:
        """An attribute that is a condition by itself: ``accelerator.is_main_process``."""
        where = (module.locate(node), module.places.excerpt(node))
        if name == "sync_gradients" and isinstance(value, (Accelerator, Call)):
            return Test((Condition(Meaning.BOUNDARY, True, *where),))
        if name.startswith("is_") and is_first_rank_name(name):
            return Test((Condition(Meaning.FIRST_RANK, True, *where),))
        return None

    def called(
        self, node: ast.Call, callee: Any, arguments: Arguments, module: LocalModule
    ) -> tuple[Any] | None:
        """The value of a call on a loop's value in a tuple, None where it is none."""
        if isinstance(callee, (EngineValue, ModuleValue)):
            return (self._forward(node, callee, arguments, module),)
        if isinstance(callee, Call):
            return (self._method(node, callee.receiver, callee.name, arguments, module),)
        owner = self._notes.owner(callee)
        if isinstance(owner, ModuleValue):
            return (self._forward(node, owner, arguments, module),)
        if isinstance(callee, Derived):
            return (self._loss_method(node, callee, arguments, module),)
        if isinstance(callee, Batch):
            return (callee,)
        if isinstance(callee, (Made, Role)):
            if isinstance(callee, Made):
                lose_dicts(node, callee.name, arguments, module, self._notes)
            return (flowing(arguments.all),)
        return None

    def _of_engine(self, value: EngineValue, name: str) -> Any:
        engine = value.engine
        if name in _ENGINE_RANKS:
            return Rank()
        if name == "module":
            return ModuleValue(engine)
        roles = {"optimizer": "optimizer", "lr_scheduler": "scheduler"}
        roles["training_dataloader"] = "loader"
        if name in roles:
            return Role(engine, roles[name])
        return Call(value, name)

    def _forward(
        self,
        node: ast.Call,
        callee: EngineValue | ModuleValue,
        arguments: Arguments,
        module: LocalModule,
    ) -> Any:
        whose = Whose.ENGINE if isinstance(callee, EngineValue) else Whose.MODULE
        batch = flowing(arguments.all)
        loader = batch.loader if isinstance(batch, Batch) else None
        self._notes.act(Does.FORWARD, callee.engine, node, module, whose=whose, loader=loader)
        return Derived(frozenset({callee.engine}))

    def _method(
        self, node: ast.Call, receiver: Any, name: str, arguments: Arguments, module: LocalModule
    ) -> Any:
        if isinstance(receiver, EngineValue):
            return self._engine_method(node, receiver, name, arguments, module)
        if isinstance(receiver, ModuleValue):
            return self._module_method(node, receiver, name, arguments, module)
        if isinstance(receiver, Role):
            return self._role_method(node, receiver, name, arguments, module)
        if isinstance(receiver, Accelerator):
            return self._accelerator_method(node, name, arguments, module)
        if isinstance(receiver, Dict):
            return self._dict_method(node, receiver, name, arguments, module)
        if isinstance(receiver, FromConfig):
            if name == "get" and arguments.positional:
                return item(receiver, arguments.positional[0])
            if name not in DICT_READS and isinstance(receiver.of, Dict):
                receiver.of.lost = f"{name}() changes a part of it"
            return None
        if isinstance(receiver, Opened):
            return receiver if name == "read" else None
        if isinstance(receiver, Made):
            return self._made_method(node, receiver, name, arguments, module)
        return None

    def _loss_method(
        self, node: ast.Call, loss: Derived, arguments: Arguments, module: LocalModule
    ) -> Any:
        if loss.method == "backward" and len(loss.engines) == 1:
            (engine,) = loss.engines
            self._notes.act(Does.LOSS_BACKWARD, engine, node, module, loss=self._notes.loss(loss))
            return None
        if loss.method in ("div", "div_", "true_divide") and arguments.positional:
            divisor = given(arguments.positional[0], node.args[0], module)
            blocks = tuple(self._notes.blocks)
            return replace(loss, divisions=(*loss.divisions, (divisor, blocks)), method="")
        # Numbers that leave the graph are no loss any more.
        return None if loss.method in ("item", "detach", "tolist") else replace(loss, method="")

    def _engine_method(
        self,
        node: ast.Call,
        receiver: EngineValue,
        name: str,
        arguments: Arguments,
        module: LocalModule,
    ) -> Any:
        engine, notes = receiver.engine, self._notes
        if name == "forward":
            return self._forward(node, receiver, arguments, module)
        if name == "backward":
            loss = notes.loss(arguments.first("loss"))
            passed = {
                k.arg: given(arguments.keywords[k.arg], k.value, module)
                for k in node.keywords
                if k.arg
            }
            notes.act(Does.BACKWARD, engine, node, module, loss=loss, arguments=passed)
            return None
        if name in _ENGINE_DOES:
            source = turns(arguments.first("data_iter")) if name == "train_batch" else None
            loader = source.loader if source is not None else None
            notes.act(_ENGINE_DOES[name], engine, node, module, loader=loader)
            return receiver if name in ("train", "eval") else None
        if name in _COUNTS:
            return FromEngine(name)
        if name == "is_gradient_accumulation_boundary":
            where = (module.locate(node), module.places.excerpt(node))
            return Test((Condition(Meaning.BOUNDARY, True, *where),))
        if name == "no_sync":
            notes.act(Does.NO_SYNC, engine, node, module)
            return Manager(Context.NO_SYNC)
        if name == "coalesce_grad_reduction":
            return Manager(Context.COALESCE)
        if name in ("parameters", "state_dict"):
            return Role(engine, name, Whose.MODULE)
        if name in ("to", "cuda"):
            return receiver
        return None

    def _module_method(
        self,
        node: ast.Call,
        receiver: ModuleValue,
        name: str,
        arguments: Arguments,
        module: LocalModule,
    ) -> Any:
        engine = receiver.engine
        if name in ("parameters", "state_dict"):
            return Role(engine, name, Whose.MODULE)
        if name in ("train", "eval"):
            does = Does.TRAIN_MODE if name == "train" else Does.EVAL_MODE
            self._notes.act(does, engine, node, module, whose=Whose.MODULE)
            return receiver
        if name == "zero_grad":
            self._notes.act(Does.ZERO_GRAD, engine, node, module, whose=Whose.MODULE)
            return None
        if name in ("save_pretrained", "push_to_hub"):
            own = arguments.keywords.get("state_dict")
            if (own is None and not arguments.starred) or (
                isinstance(own, Role) and own.what == "state_dict"
            ):
                self._notes.act(Does.SAVE_WEIGHTS, engine, node, module, whose=Whose.MODULE)
            return None
        if name == "forward":
            return self._forward(node, receiver, arguments, module)
        if name in ("to", "cuda", "half", "bfloat16", "float"):
            return receiver
        # A method of the model may call its forward: what it gives may be a loss.
        return None

    def _role_method(
        self, node: ast.Call, receiver: Role, name: str, arguments: Arguments, module: LocalModule
    ) -> Any:
        does = {
            ("optimizer", "step"): Does.OPTIMIZER_STEP,
            ("optimizer", "zero_grad"): Does.OPTIMIZER_ZERO_GRAD,
            ("scheduler", "step"): Does.SCHEDULER_STEP,
        }.get((receiver.what, name))
        if does is not None:
            self._notes.act(does, receiver.engine, node, module, whose=receiver.whose)
        if receiver.what == "loader":
            return turns(receiver)
        return None

    def _accelerator_method(
        self, node: ast.Call, name: str, arguments: Arguments, module: LocalModule
    ) -> Any:
        notes, engine = self._notes, self._notes.only_prepared
        first = arguments.positional[0] if arguments.positional else None
        if name == "prepare":
            return self._prepare(node, arguments, module)
        if name == "backward":
            own = first.engines if isinstance(first, Derived) else frozenset()
            engine = next(iter(own)) if len(own) == 1 else engine
            notes.act(Does.BACKWARD, engine, node, module, loss=notes.loss(first))
            return None
        if name == "accumulate":
            notes.act(Does.ACCUMULATE, engine, node, module)
            return Manager(Context.ACCUMULATE)
        if name == "no_sync":
            return Manager(Context.NO_SYNC)
        if name == "join_uneven_inputs":
            notes.act(Does.JOIN_UNEVEN, engine, node, module)
        if name == "save_state":
            notes.act(Does.SAVE_CHECKPOINT, engine, node, module)
        if name == "unwrap_model" and isinstance(first, EngineValue):
            return ModuleValue(first.engine)
        return None

    def _prepare(self, node: ast.Call, arguments: Arguments, module: LocalModule) -> Any:
        if arguments.starred or not arguments.positional:
            return None
        kinds = [
            _kind(value, at) for value, at in zip(arguments.positional, node.args, strict=True)
        ]
        if kinds.count("model") > 1:
            return None
        engine: Engine | None = None
        if "model" in kinds:
            at = node.args[kinds.index("model")]
            engine = self._notes.add_engine(
                Engine(
                    name=module.places.excerpt(at),
                    maker=Maker.ACCELERATE,
                    location=module.locate(node),
                    passed={
                        kind: module.locate(a) for kind, a in zip(kinds, node.args, strict=True)
                    },
                    blocks=tuple(self._notes.blocks),
                    made_by={
                        kind: value.name
                        for kind, value in zip(kinds, arguments.positional, strict=True)
                        if isinstance(value, Made)
                    },
                )
            )
        else:
            engine = self._notes.only_prepared
        values = [
            self._prepared(kind, value, engine)
            for kind, value in zip(kinds, arguments.positional, strict=True)
        ]
        return values[0] if len(values) == 1 else Items(tuple(values))

    def _prepared(self, kind: str, value: Any, engine: Engine | None) -> Any:
        if kind == "loader" and isinstance(value, Made):
            value.is_prepared = True
            return value
        if engine is None:
            return value
        if kind == "model":
            self._notes.belongs(value, ModuleValue(engine))
            return EngineValue(engine)
        self._notes.belongs(value, Role(engine, kind, Whose.CLIENT))
        return Role(engine, kind)

    def _dict_method(
        self, node: ast.Call, receiver: Dict, name: str, arguments: Arguments, module: LocalModule
    ) -> Any:
        if name == "update" and not arguments.starred:
            where, blocks = module.locate(node), tuple(self._notes.blocks)
            named = Dict(node, where, blocks, keyword_entries(node, arguments, module))
            for value in (*arguments.positional, named):
                merge(receiver, value, blocks)
        elif name == "get" and arguments.positional:
            return item(receiver, arguments.positional[0])
        elif name not in DICT_READS:
            receiver.lost = f"{name}() changes it"
        return None

    def _made_method(
        self, node: ast.Call, receiver: Made, name: str, arguments: Arguments, module: LocalModule
    ) -> Any:
        if name == "step" and re.search(_SCHEDULERS, receiver.name):
            engine = self._notes.optimizer_of(receiver)
            passed = {
                key: Given(Constant(text), receiver.location, text)
                for key, text in receiver.texts.items()
            }
            self._notes.act(
                Does.SCHEDULER_STEP, engine, node, module, whose=Whose.OWN, arguments=passed
            )
            return None
        if name in ("parameters", "state_dict", "step", "zero_grad"):
            return None
        if name in ("open", "read_text") and receiver.name == "pathlib.Path":
            return opened(receiver)
        if name in ("to", "cuda", "train", "eval"):
            return receiver
        lose_dicts(node, receiver.name, arguments, module, self._notes)
        found = flowing(arguments.all)
        if found is not None:
            return found
        texts = [module.places.excerpt(argument) for argument in node.args]
        by_rank = receiver.by_rank or name in _PART or any("rank" in text for text in texts)
        return Made(
            f"{receiver.name}.{name}",
            receiver.location,
            receiver.positional,
            receiver.keywords,
            receiver.texts,
            by_rank=by_rank,
        )


def item(value: Any, key: Any) -> Any:
    """``value[key]`` of a loop's value; None where it says nothing."""
    if isinstance(value, (Derived, Batch)):
        return value
    if not isinstance(key, Constant):
        return None
    if isinstance(value, External) and value.name == "os.environ":
        return variable(key.value)
    if isinstance(value, Dict) and isinstance(key.value, str) and not value.lost:
        entry = value.entries.get(key.value)
        if entry is None and value.file is not None:
            return FromConfig(key.value, value)
        return entry.value if entry is not None else None
    if isinstance(value, FromConfig) and value.of is not None:
        return FromConfig(f"{value.key}.{key.value}", value.of)
    if isinstance(value, Made) and isinstance(key.value, str):
        if value.name == "json.load" or value.name == "json.loads":
            return FromConfig(key.value)
        return value if value.name.startswith("datasets.") else None
    members = getattr(value, "members", None)
    if isinstance(members, tuple) and isinstance(key.value, int):
        return members[key.value] if -len(members) <= key.value < len(members) else None
    return None


def _kind(value: Any, node: ast.expr) -> str:
    """What ``accelerator.prepare`` is given, by what it is or by its name."""
    if isinstance(value, Made):
        if value.loader is not None:
            return "loader"
        if re.search(_SCHEDULERS, value.name):
            return "scheduler"
        if "optim" in value.name.lower() or value.last.endswith(("Adam", "AdamW", "SGD")):
            return "optimizer"
    name = last_name(node)
    for kind in ("loader", "optim", "sched"):
        if kind in name.lower():
            return {"optim": "optimizer", "sched": "scheduler"}.get(kind, kind)
    return "model" if re.search(r"model|net|unet|policy", name, re.I) else "unknown"
