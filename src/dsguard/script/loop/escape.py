"""Code that is not read and what it may do with what it gets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dsguard.script.loop.description import FromConfig
from dsguard.script.loop.dicts import DICT_READS
from dsguard.script.loop.values import Dict
from dsguard.script.objects import Class, Instance, Namespace

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from dsguard.script.arguments import Arguments
    from dsguard.script.loop.notes import Notes
    from dsguard.script.module import LocalModule

HARMLESS = frozenset(
    {
        *("builtins", "torch", "tqdm", "logging", "json", "os", "copy", "pprint", "wandb"),
        *("deepspeed", "transformers", "accelerate", "datasets", "math", "numpy", "time"),
    }
)
"""Libraries that change nothing of an engine they are given."""

_KEEP_DICTS = frozenset(
    {
        *("lightning", "pytorch_lightning", "trl", "peft", "diffusers", "ray", "yaml", "hjson"),
        *("mlflow", "comet_ml", "neptune", "swanlab", "clearml", "aim", "rich", "loguru", "absl"),
        *("argparse", "types", "typing", "dataclasses", "warnings", "sys", "hashlib", "pickle"),
        *("collections", "inspect", "marshal", "reprlib", "string", "textwrap", "traceback"),
        *("orjson", "ujson", "simplejson", "toml", "tomli_w", "tomlkit", "ruamel", "msgpack"),
        *("joblib", "cloudpickle", "dill", "requests", "httpx", "pydantic", "jsonschema"),
        *("omegaconf", "hydra", "easydict", "addict", "munch", "ml_collections", "pandas"),
        *("tabulate", "prettytable", "structlog", "tensorboardX", "dvclive", "deepdiff"),
    }
)
"""Libraries besides that change nothing of a dict they are given."""

_PARTS = frozenset(
    {
        *("zero_optimization", "optimizer", "scheduler", "params", "fp16", "bf16", "bfloat16"),
        *("offload_optimizer", "offload_param", "data_types", "tensor_parallel", "autotuning"),
    }
)
"""Keys of a config whose values are blocks, which other code may change."""

_TELLS = re.compile(
    r"_*(?:(?:p?print|log|dumps?|save(?=_))(?:_?\d+|_(?!(?:\w*_)?and_)\w+)?"
    r"|(?:info|debug|warn|warning|error)(?:_?(?:\d+|once|all|rank_?(?:0|zero)))?"
    r"|write(?:_(?:json|ya?ml|toml|text|file|config|to_\w+))?"
    r"|(?:rank_?(?:0|zero)|main|master|dist)_(?:print|log|info|debug|warn|warning))"
)
"""Names of functions that say by it that they only tell or write down what they are given."""

_DEEPEST = 12


def lose_dicts(
    node: ast.Call, callee: str, arguments: Arguments, module: LocalModule, notes: Notes
) -> None:
    """Note that code which is not read gets dicts that it may change.

    ``callee`` is the dotted name of what is called, as far as it is known.
    """
    of_dict = callee.startswith("builtins.dict.") and callee.rpartition(".")[2] not in DICT_READS
    if not of_dict and _keeps_dicts(node.func, callee, arguments):
        return
    # dict.update(config, more) changes the first alone.
    passed = arguments.positional[:1] if of_dict else arguments.all
    reason = f"{module.places.excerpt(node.func)} may change it"
    for found in _dicts(passed, notes):
        found.lost = reason
    if any(isinstance(value, Namespace) for value in passed):
        notes.lose_held(reason)


def lose_own(node: ast.Call, of: Instance, module: LocalModule, notes: Notes) -> None:
    """Note that a method that is not read, of a base class, may change what the object holds."""
    last = getattr(node.func, "attr", "")
    bases = [base for base in of.of.lineage() if not isinstance(base, Class)]
    unread = [base for base in bases if getattr(base, "library", "") not in HARMLESS | _KEEP_DICTS]
    if not unread or _TELLS.fullmatch(last):
        return
    reason = f"{module.places.excerpt(node.func)} may change it"
    for found in _dicts((*of.attributes.values(), *of.of.attributes.values()), notes):
        found.lost = reason


def _keeps_dicts(func: ast.expr, callee: str, arguments: Arguments) -> bool:
    if callee == "functools.partial" and arguments.positional:
        callee = getattr(arguments.positional[0], "name", "")
        last = callee.rpartition(".")[2]
    else:
        last = getattr(func, "attr", "") or getattr(func, "id", "")
    library = callee.partition(".")[0]
    return library in HARMLESS or library in _KEEP_DICTS or _TELLS.fullmatch(last) is not None


def _dicts(passed: Iterable[Any], notes: Notes) -> list[Dict]:
    """The dicts among values and in what holds them; each is looked into once."""
    found: dict[int, Dict] = {}
    seen: set[int] = set()
    pending = [(value, 0) for value in passed]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, FromConfig) and value.path[-1] in _PARTS:
            value = value.of
        if id(value) in seen or depth > _DEEPEST:
            continue
        seen.add(id(value))
        members = getattr(value, "members", None)
        if isinstance(value, Dict):
            found[id(value)] = value
            if notes.may_look(len(value.entries)):
                pending.extend((entry.value, depth + 1) for entry in value.entries.values())
        elif isinstance(members, tuple) and notes.may_look(len(members)):
            pending.extend((member, depth + 1) for member in members)
    return list(found.values())
