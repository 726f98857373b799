"""Calls of libraries that matter to a training loop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dsguard.script.declaration import Constant, FromArgument, Unreadable
from dsguard.script.loop.description import (
    Config,
    Context,
    Counted,
    Does,
    Engine,
    Given,
    Loader,
    Maker,
    Whose,
)
from dsguard.script.loop.dicts import changes, keyword_entries, literal
from dsguard.script.loop.escape import HARMLESS, lose_dicts
from dsguard.script.loop.notes import Notes, given
from dsguard.script.loop.values import (
    Accelerator,
    Batch,
    Derived,
    Dict,
    EngineValue,
    Made,
    Manager,
    ModuleValue,
    Opened,
    Rank,
    Role,
    Turns,
)
from dsguard.script.objects import External, Instance, Items, Namespace
from dsguard.script.setups import setup_class

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping, Sequence

    from dsguard.script.arguments import Arguments
    from dsguard.script.module import LocalModule

INITIALIZE = (
    *("args", "model", "optimizer", "model_parameters", "training_data", "lr_scheduler"),
    *("distributed_port", "mpu", "dist_init_required", "collate_fn", "config", "mesh_param"),
    "config_params",
)
"""The parameters of ``deepspeed.initialize``, in order (deepspeed/__init__.py)."""

_LOADER = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler")
_COUNTS = {"device_count": "devices", "get_world_size": "ranks"}
_RANKS = frozenset({"get_rank", "get_local_rank", "get_global_rank"})
RANK_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})
_CLIPS = frozenset({"clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"})
_PASSES_ON = frozenset({"tqdm", "iter", "RepeatingLoader", "trange", "cycle"})
_DICT_MAKERS = frozenset({"builtins.dict"})
_OPENS = frozenset({"builtins.open", "io.open", "codecs.open"})
_LOADS = frozenset({"json.load", "json.loads", "hjson.load", "hjson.loads"})
_CONFIG_TAKERS: Mapping[str, tuple[str, ...]] = {
    "DeepSpeedPlugin": ("hf_ds_config",),
    "DeepSpeedStrategy": ("config",),
    "HfDeepSpeedConfig": ("config_file_or_dict", "0"),
    "HfTrainerDeepSpeedConfig": ("config_file_or_dict", "0"),
}
_RANKED = (
    "rank", "world", "shard", "worker", "split_dataset", "process_index", "num_processes",
)  # fmt: skip
"""What the text of something that differs between ranks is written with."""


def bound(
    node: ast.Call, arguments: Arguments, parameters: Sequence[str]
) -> dict[str, tuple[Any, ast.expr]]:
    """What is passed by name or place, each with its expression."""
    found: dict[str, tuple[Any, ast.expr]] = {}
    for name, value, at in zip(parameters, arguments.positional, node.args, strict=False):
        found[name] = (value, at)
    for keyword in node.keywords:
        if keyword.arg is not None:
            found[keyword.arg] = (arguments.keywords[keyword.arg], keyword.value)
    for name, value in arguments.keywords.items():
        found.setdefault(name, (value, node))  # from a dict behind **
    return found


class LibraryCalls:
    """What calls of libraries give, as far as it belongs to a loop."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def read(
        self, node: ast.Call, callee: External, arguments: Arguments, module: LocalModule
    ) -> Any:
        """The value of a call, None where it is of no interest."""
        name, last = callee.name, callee.last
        if name in ("deepspeed.initialize", "deepspeed.runtime.initialize"):
            return self._initialize(node, arguments, module)
        if name in ("accelerate.Accelerator", "accelerate.accelerator.Accelerator"):
            made = self._made(node, callee, arguments, module)
            self._config_of(node, arguments, module, ("deepspeed_plugin",))
            return Accelerator(made)
        if last == "DataLoader" and callee.library in ("torch", "torchdata"):
            return self._loader(node, callee, arguments, module)
        if last in _COUNTS and callee.library in ("torch", "deepspeed"):
            return Counted(_COUNTS[last])
        if last in _RANKS and callee.library in ("torch", "deepspeed"):
            return Rank()
        if name in ("os.environ.get", "os.getenv"):
            key = arguments.first("key")
            return variable(key.value) if isinstance(key, Constant) else None
        if name in ("builtins.int", "builtins.next") and arguments.positional:
            return self._converted(name, arguments.positional[0])
        if last in _CLIPS and callee.library == "torch":
            self._clip(node, arguments, module)
            return None
        if name == "torch.save" or last == "save_file":
            self._save(node, arguments, module)
            return None
        if last in _CONFIG_TAKERS:
            self._config_of(node, arguments, module, _CONFIG_TAKERS[last])
            if last in ("HfDeepSpeedConfig", "HfTrainerDeepSpeedConfig"):
                self._notes.set_up(module.locate(node))
            if setup_class(callee) is not None:
                self._build_config(node, arguments, module, last)
        if last == "Trainer" and callee.library in ("lightning", "pytorch_lightning"):
            self._strategy_by_name(node, arguments, module)
        if last == "from_pretrained" and callee.library in ("transformers", "diffusers", "peft"):
            self._load(node, callee, arguments, module)
        if last in ("GatheredParameters", "no_grad", "inference_mode", "autocast"):
            gathered = last == "GatheredParameters"
            return Manager(Context.GATHERED if gathered else Context.OTHER)
        if name in _OPENS:
            return opened(arguments.first("file"))
        if name in _LOADS and isinstance(first := arguments.first("fp"), Opened):
            where = module.locate(node)
            loaded = Dict(node, where, tuple(self._notes.blocks), file=first.name)
            self._notes.loaded.append(loaded)
            return loaded
        if name in _DICT_MAKERS:
            return self._dict(node, arguments, module)
        return self._flowing(node, callee, arguments, module)

    def training_arguments(self, node: ast.Call, arguments: Arguments, module: LocalModule) -> None:
        """``TrainingArguments(…, deepspeed=…)``: a config, and from here transformers knows it."""
        self._config_of(node, arguments, module, ("deepspeed",))
        self._notes.set_up(module.locate(node))

    def note_config(self, value: Any, node: ast.AST, module: LocalModule) -> Config | None:
        """What an argument that takes a config is given; None where it is given none."""
        if value == Constant(None):
            return None
        where = module.locate(node)
        if isinstance(value, (Constant, FromArgument)):
            is_path = isinstance(value, FromArgument) or isinstance(value.value, str)
            config = Config(where, path=value if is_path else None, reason="it is no file name")
        elif isinstance(value, Dict) and value.file is not None:
            changed = changes(value)
            config = Config(where, path=value.file, reason=value.lost, changes=changed)
        elif isinstance(value, Dict):
            found = literal(value)
            config = Config(where, literal=found, reason=value.lost)
        else:
            # What code that is not read makes of a config that was loaded before.
            files = list(dict.fromkeys(made.file for made in self._notes.loaded))
            path = files[0] if len(files) == 1 else None
            reason = "it is only known when the script runs"
            config = Config(where, path=path, reason=reason, changes=None)
        return self._notes.add_config(config, is_dict=isinstance(value, Dict))

    def escape(
        self, node: ast.Call, callee: Any, arguments: Arguments, module: LocalModule
    ) -> None:
        """Note that code which is not read gets an engine, or a dict that it may change."""
        if not isinstance(callee, External):
            self._notes.write_unseen(node, module)
        library = getattr(callee, "library", "")
        for value in arguments.all:
            if isinstance(value, (EngineValue, ModuleValue)) and library not in HARMLESS:
                self._notes.act(Does.ESCAPE, value.engine, node, module)
        name = callee.name if isinstance(callee, External) else ""
        lose_dicts(node, name, arguments, module, self._notes)

    def _initialize(self, node: ast.Call, arguments: Arguments, module: LocalModule) -> Any:
        passed = bound(node, arguments, INITIALIZE)
        model = passed.get("model", (None, node))[0]
        config = None
        for name in ("config", "config_params"):
            if name in passed and config is None:
                config = self.note_config(*passed[name], module)
        args = passed.get("args")
        elsewhere = arguments.starred and self._notes.loaded
        if config is None and (elsewhere or (args is not None and isinstance(args[0], Dict))):
            config = self.note_config(None, node, module)
        if config is None and args is not None and isinstance(args[0], Namespace):
            where = module.locate(args[1])
            config = self._notes.add_config(Config(where, path=FromArgument("deepspeed_config")))
        pipeline = isinstance(model, Made) and model.last == "PipelineModule"
        of = getattr(model, "of", None)
        if of is not None and hasattr(of, "lineage"):
            pipeline = any(getattr(base, "last", "") == "PipelineModule" for base in of.lineage())
        engine = self._notes.add_engine(
            Engine(
                name="engine",
                maker=Maker.DEEPSPEED,
                location=module.locate(node),
                passed={
                    name: module.locate(at)
                    for name, (value, at) in passed.items()
                    if value != Constant(None)
                },
                blocks=tuple(self._notes.blocks),
                config=config,
                is_pipeline=pipeline,
                stages=_stages(model) if pipeline else None,
                has_scheduler=isinstance(passed.get("lr_scheduler", (None,))[0], (Made, Instance)),
                complete=not arguments.starred,
                made_by={
                    name: value.name
                    for name, (value, _) in passed.items()
                    if isinstance(value, Made)
                },
            )
        )
        if model is not None:
            self._notes.belongs(model, ModuleValue(engine))
        for name, what in (("optimizer", "optimizer"), ("lr_scheduler", "scheduler")):
            if name in passed:
                self._notes.belongs(passed[name][0], Role(engine, what, Whose.CLIENT))
        roles = (Role(engine, "optimizer"), Role(engine, "loader"), Role(engine, "scheduler"))
        return Items((EngineValue(engine), *roles))

    def _made(
        self, node: ast.Call, callee: External, arguments: Arguments, module: LocalModule
    ) -> Made:
        texts = [module.places.excerpt(at) for at in node.args]
        texts += [module.places.excerpt(keyword.value) for keyword in node.keywords]
        by_rank = any(map(_speaks_of_ranks, texts)) or any(
            isinstance(value, Rank) or (isinstance(value, Made) and value.by_rank)
            for value in arguments.all
        )
        return Made(
            callee.name,
            module.locate(node),
            arguments.positional,
            dict(arguments.keywords),
            {k.arg: module.places.excerpt(k.value) for k in node.keywords if k.arg},
            by_rank=by_rank or any(k.arg and _speaks_of_ranks(k.arg) for k in node.keywords),
        )

    def _loader(
        self, node: ast.Call, callee: External, arguments: Arguments, module: LocalModule
    ) -> Made:
        passed = bound(node, arguments, _LOADER)
        passed = {name: one for name, one in passed.items() if one[0] != Constant(None)}
        made = self._made(node, callee, arguments, module)
        size: Given | None = None
        if "batch_size" in passed:
            size = given(*passed["batch_size"], module)
        elif not arguments.starred and "batch_sampler" not in passed:
            size = Given(Constant(1), made.location, "the default of DataLoader")
        drop = passed.get("drop_last")
        constant = drop[0] if drop is not None else Constant(False)
        sampled = "sampler" in passed or "batch_sampler" in passed
        made.loader = Loader(
            location=made.location,
            batch_size=None if "batch_sampler" in passed else size,
            sampler=None if arguments.starred and not sampled else sampled,
            drop_last=bool(constant.value)
            if isinstance(constant, Constant) and not arguments.starred
            else None,
            shards=_may_be_part(passed["dataset"][0], made) if "dataset" in passed else True,
        )
        return made

    def _converted(self, name: str, value: Any) -> Any:
        if name == "builtins.int":
            return value if isinstance(value, (Rank, Counted)) else None
        return Batch(value.loader) if isinstance(value, Turns) else None

    def _clip(self, node: ast.Call, arguments: Arguments, module: LocalModule) -> None:
        found = bound(node, arguments, ("parameters", "max_norm"))
        parameters = found.get("parameters", (None, node))[0]
        if isinstance(parameters, Role) and parameters.what == "parameters":
            passed = {n: given(v, at, module) for n, (v, at) in found.items()}
            self._notes.act(
                Does.CLIP, parameters.engine, node, module, whose=Whose.MODULE, arguments=passed
            )

    def _save(self, node: ast.Call, arguments: Arguments, module: LocalModule) -> None:
        for value in arguments.all:
            held = (
                [entry.value for entry in value.entries.values()]
                if isinstance(value, Dict)
                else [value]
            )
            for one in held:
                if isinstance(one, Role) and one.what == "state_dict":
                    self._notes.act(Does.SAVE_WEIGHTS, one.engine, node, module, whose=Whose.MODULE)
                    return

    def _load(
        self, node: ast.Call, callee: External, arguments: Arguments, module: LocalModule
    ) -> None:
        kind = callee.name.split(".")[-2]
        if re.search(r"Tokenizer|Processor|Config|FeatureExtractor|Scheduler", kind):
            return
        passed = {
            name: given(value, at, module)
            for name, (value, at) in bound(node, arguments, ("name",)).items()
        }
        self._notes.load(kind, module.locate(node), passed)

    def _config_of(
        self, node: ast.Call, arguments: Arguments, module: LocalModule, names: Sequence[str]
    ) -> None:
        passed = bound(node, arguments, [str(i) for i in range(3)])
        for name in names:
            if name in passed and not isinstance(passed[name][0], Made):
                self.note_config(*passed[name], module)

    def _build_config(
        self, node: ast.Call, arguments: Arguments, module: LocalModule, of: str
    ) -> None:
        """A config that is built of other arguments, as without ``config=``."""
        from dsguard.script.loop.built import plugin_config, strategy_config

        build = {"DeepSpeedPlugin": plugin_config, "DeepSpeedStrategy": strategy_config}.get(of)
        if build is None or arguments.starred or arguments.positional:
            return
        passed = bound(node, arguments, ())
        if all(name not in passed for name in _CONFIG_TAKERS[of]):
            made = build(passed, node, module)
            self._notes.add_config(Config(made.location, literal=made))

    def _strategy_by_name(self, node: ast.Call, arguments: Arguments, module: LocalModule) -> None:
        """``Trainer(strategy="deepspeed_stage_2")``."""
        value, at = bound(node, arguments, ()).get("strategy", (None, node))
        if isinstance(value, Constant) and isinstance(value.value, str):
            from dsguard.script.loop.built import registered_config

            made = registered_config(value.value, at, module)
            if made is not None:
                self._notes.add_config(Config(made.location, literal=made))

    def _dict(self, node: ast.Call, arguments: Arguments, module: LocalModule) -> Dict:
        made = Dict(node, module.locate(node), tuple(self._notes.blocks))
        if node.args or arguments.starred:
            made.lost = "it is made of something that is only known when the script runs"
        made.entries.update(keyword_entries(node, arguments, module))
        return made

    def _flowing(
        self, node: ast.Call, callee: External, arguments: Arguments, module: LocalModule
    ) -> Any:
        """Calls through which a loss, a batch or a loader passes, and any other object made."""
        first = arguments.positional[0] if arguments.positional else None
        source = turns(first)
        if callee.name == "builtins.enumerate" and source is not None:
            return replace(source, counted=True)
        if callee.last in _PASSES_ON and source is not None:
            return source
        self.escape(node, callee, arguments, module)
        found = flowing(arguments.all)
        if found is not None:
            return found
        if callee.library == "builtins":
            return None
        return self._made(node, callee, arguments, module)


def opened(name: Any) -> Opened | None:
    """A file of this name; None where the name is not known."""
    if isinstance(name, Made) and name.name == "pathlib.Path" and len(name.positional) == 1:
        (name,) = name.positional
    if isinstance(name, FromArgument) or (
        isinstance(name, Constant) and isinstance(name.value, str)
    ):
        return Opened(name)
    return None


def variable(name: Any) -> Rank | Counted | None:
    """What a launcher says in a variable of the environment."""
    if name in RANK_VARIABLES:
        return Rank()
    return Counted("ranks") if name == "WORLD_SIZE" else None


def turns(value: Any) -> Turns | None:
    """A loader as something to loop over."""
    if isinstance(value, Turns):
        return value
    if isinstance(value, Made) and value.loader is not None:
        return Turns(value.loader, is_prepared=value.is_prepared)
    if isinstance(value, Role) and value.what == "loader":
        return Turns(None, is_prepared=value.engine.maker is Maker.ACCELERATE)
    return None


def flowing(values: Sequence[Any]) -> Derived | Batch | None:
    """What a call that is not read makes of a loss or a batch that it is given."""
    losses = [value for value in _each(values) if isinstance(value, Derived)]
    if losses:
        engines = frozenset(engine for loss in losses for engine in loss.engines)
        if len(losses) == 1:
            return Derived(engines, losses[0].divisions, losses[0].is_sum)
        return Derived(engines, is_sum=True)
    return next((value for value in _each(values) if isinstance(value, Batch)), None)


def _stages(pipeline: Any) -> Given | None:
    """What a ``PipelineModule(…, num_stages=…)`` is given."""
    if not isinstance(pipeline, Made) or "topology" in pipeline.keywords:
        return None
    if "num_stages" not in pipeline.keywords:
        return None
    value = pipeline.keywords["num_stages"]
    text = pipeline.texts["num_stages"]
    if not isinstance(value, (Constant, FromArgument)):
        value = Unreadable(f"`{text}` is only known when the script runs")
    return Given(value, pipeline.location, text)


def _each(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        members = getattr(value, "members", None)
        found.extend(members if isinstance(members, tuple) else [value])
    return found


def _speaks_of_ranks(text: str) -> bool:
    return any(word in text.lower() for word in _RANKED)


_WHOLE = frozenset({"torch", "torchvision", "datasets", "sklearn"})


def _may_be_part(dataset: Any, loader: Made) -> bool:
    """Whether a dataset may hold one rank's part only, as far as the script shows."""
    if isinstance(dataset, Made):
        texts = " ".join(dataset.texts.values())
        whole = dataset.name.partition(".")[0] in _WHOLE and "streaming" not in dataset.texts
        parts = [value for value in dataset.positional if isinstance(value, Made)]
        return (
            not whole
            or dataset.by_rank
            or _speaks_of_ranks(texts)
            or any(_may_be_part(value, loader) for value in parts)
        )
    of = getattr(dataset, "of", None)
    if of is not None and hasattr(of, "scope"):
        text = of.scope.module.places.text(of.node)
        return _speaks_of_ranks(text) or "Iterable" in text
    return True
