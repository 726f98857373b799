"""What import statements bind: local modules where they are at hand, else library names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from dsguard.model.source import Source
from dsguard.script.module import LocalModule
from dsguard.script.objects import COMPUTED, LONGEST_NAME, External, Value
from dsguard.script.syntax import UnreadableTextError
from dsguard.script.training_arguments import FRAMEWORK_CLASSES

if TYPE_CHECKING:
    from dsguard.script.scope import Scope

ModuleFinder: TypeAlias = Callable[[str], Source | None]
"""Gives the source of a dotted module name, None for modules that are not the user's own."""

MODULE_DEPTH = 2
"""How far imports of local modules are followed, counted from the script."""

_MOST_MODULES = 40

# What ``from library import *`` binds, of the names that matter.
_STAR = {
    "accelerate": ("Accelerator", "DeepSpeedPlugin"),
    "accelerate.utils": ("DeepSpeedPlugin", "GradientAccumulationPlugin"),
    "deepspeed": ("initialize", "add_config_arguments", "PipelineModule"),
    "lightning": ("Trainer",),
    "pytorch_lightning": ("Trainer",),
    "torch.utils.data": ("DataLoader", "DistributedSampler"),
    "argparse": ("ArgumentParser", "BooleanOptionalAction", "SUPPRESS", "Namespace"),
    "dataclasses": ("dataclass", "field"),
    "transformers": ("HfArgumentParser", "TrainingArguments", "Seq2SeqTrainingArguments"),
    "trl": ("TrlParser", *(n for n, c in FRAMEWORK_CLASSES.items() if c.library == "trl")),
    "typing": ("Annotated", "ClassVar", "List", "Literal", "Optional", "Tuple", "Union"),
}

# Libraries that a folder of the same name beside the script does not replace.
_LIBRARIES = frozenset(
    {
        *("argparse", "click", "typer", "transformers", "trl", "deepspeed", "torch", "accelerate"),
        *("dataclasses", "typing", "enum", "fire", "tyro", "jsonargparse", "absl", "hydra"),
        *("configargparse", "simple_parsing", "tap", "sys", "os"),
    }
)


class Imports:
    """Binds imported names and keeps the local modules of one script.

    ``find`` gives the source of a module; ``follow`` runs the statements of a module that is
    imported for the first time.
    """

    def __init__(self, find: ModuleFinder | None, follow: Callable[[LocalModule], None]) -> None:
        self._find = find
        self._follow = follow
        self._modules: dict[str, LocalModule | None] = {}

    def local(self) -> list[LocalModule]:
        """The modules of the user's own that were read."""
        return [module for module in self._modules.values() if module is not None]

    def loaded(self, name: str) -> LocalModule | None:
        """A local module that was imported already."""
        return self._modules.get(name)

    def bind(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        """Give the names of an import statement what they stand for."""
        module = scope.module
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                self._module(alias.name, module)
                bound = self._module(name, module) or External(name)
                scope.bind(alias.asname or name, bound)
            return
        origin = module.absolute(node.module, node.level)
        for alias in node.names:
            if alias.name == "*":
                self._bind_all(origin, scope)
            else:
                scope.bind(alias.asname or alias.name, self._imported(origin, alias.name, module))

    def _imported(self, origin: str | None, name: str, module: LocalModule) -> Value:
        local = self._module(origin, module) if origin is not None else None
        found = local.scope.find(name) if local is not None else None
        if found is not None:
            return found
        if origin and len(origin) > LONGEST_NAME:
            return COMPUTED
        path = f"{origin}.{name}" if origin else name
        return self._module(path, module) or External(path)

    def _bind_all(self, origin: str | None, scope: Scope) -> None:
        local = self._module(origin, scope.module) if origin else None
        if local is not None:
            for name, value in local.scope.names.items():
                if not name.startswith("_"):
                    scope.bind(name, value)
        elif origin:
            for name in _STAR.get(origin, ()):
                scope.bind(name, External(f"{origin}.{name}"))

    def _module(self, name: str, importer: LocalModule) -> LocalModule | None:
        """A local module, run as its import would; None for libraries and what is too deep."""
        if self._find is None or name.partition(".")[0] in _LIBRARIES:
            return None
        if name in self._modules:
            return self._modules[name]
        if importer.depth >= MODULE_DEPTH or len(self._modules) >= _MOST_MODULES:
            return None
        self._modules[name] = None
        source = self._find(name)
        if source is None:
            return None
        try:
            module = LocalModule(source, name, importer.depth + 1)
        except UnreadableTextError:
            return None
        self._modules[name] = module
        self._follow(module)
        return module
