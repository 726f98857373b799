"""DeepSpeed's pydantic models as its source declares them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deepspeed_source.values import UNKNOWN, Class, Scope
from dsguard.schema.shape import kind_of

if TYPE_CHECKING:
    from deepspeed_source.follow import Reader


@dataclass
class Setting:
    """A field of one of DeepSpeed's pydantic models."""

    default: Any
    limits: frozenset[str]
    kinds: frozenset[str]
    choices: tuple[Any, ...]
    models: tuple[Class, ...]
    name: str


_KINDS = {
    "bool": "boolean",
    "int": "whole",
    "float": "number",
    "str": "string",
    "path": "string",
    "list": "list",
    "tuple": "list",
    "dict": "object",
    "none": "null",
}
"""JSON types by the names of annotations, lower-cased."""


class Models:
    """Reads declarations of fields; ``reader`` knows what the names in them mean."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def is_model(self, kind: Class) -> bool:
        """Whether a class is a pydantic model."""
        return any(
            getattr(base, "id", "") in ("BaseModel", "DeepSpeedConfigModel")
            for ancestor in self._reader.ancestors(kind)
            for base in ancestor.node.bases
        )

    def refuses_unknown_keys(self, kind: Class) -> bool:
        """Whether a model or one it is made from says ``extra = "forbid"``."""
        return any(
            isinstance(node, ast.Assign | ast.keyword)
            and (getattr(node, "arg", "") or getattr(node.targets[0], "id", "")) == "extra"  # type: ignore[union-attr]
            and "forbid" in ast.unparse(node.value)
            for ancestor in self._reader.ancestors(kind)
            for part in ancestor.node.body
            if isinstance(part, ast.ClassDef | ast.Assign)
            for node in ast.walk(part)
        )

    def settings(self, kind: Class) -> dict[str, Setting]:
        """The fields of a model by the name that a config uses."""
        found: dict[str, Setting] = {}
        for ancestor in reversed(list(self._reader.ancestors(kind))):
            scope = Scope(ancestor.module)
            for node in ancestor.node.body:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    alias, setting = self._setting(node.target.id, node.value, node, scope)
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    # pydantic 1 took plain assignments for fields too.
                    name = node.targets[0].id
                    if name == "model_config" or name.startswith("_"):
                        continue
                    alias, setting = self._setting(name, node.value, None, scope)
                else:
                    continue
                found[alias] = setting
        return found

    def _setting(
        self, name: str, value: ast.expr | None, typed: ast.AnnAssign | None, scope: Scope
    ) -> tuple[str, Setting]:
        said: dict[str, ast.expr] = {}
        default = self._reader.value(value, scope)
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "Field":
            said = {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg}
            default = self._reader.value(
                value.args[0] if value.args else said.get("default"), scope
            )
            factory = said.get("default_factory")
            if isinstance(factory, ast.Lambda):
                default = self._reader.value(factory.body, scope)
            elif factory is not None:
                default = {}
        kinds, choices, models = set[str](), list[Any](), list[Class]()
        if typed is not None:
            self._types(typed.annotation, scope, kinds, choices, models)
        else:
            kinds.add(kind_of(default))
        if default is None:
            kinds.add("null")  # pydantic 1 took None wherever it is the default
        limits = frozenset(
            f"{limit} {self._reader.value(said[limit], scope):g}"
            for limit in ("gt", "ge", "lt", "le")
            if limit in said
        )
        alias = self._reader.value(said["alias"], scope) if "alias" in said else name
        setting = Setting(default, limits, frozenset(kinds), tuple(choices), tuple(models), name)
        return alias, setting

    def _types(
        self,
        node: ast.expr,
        scope: Scope,
        kinds: set[str],
        choices: list[Any],
        models: list[Class],
    ) -> None:
        """Add what an annotation takes: JSON types, the only values taken, and models."""
        if isinstance(node, ast.Subscript):
            outer = getattr(node.value, "id", "")
            if outer == "Literal":
                values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                choices.extend(self._reader.value(value, scope) for value in values)
                kinds.update(kind_of(choice) for choice in choices)
            elif outer in ("Optional", "Union"):
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                for part in parts:
                    self._types(part, scope, kinds, choices, models)
                if outer == "Optional":
                    kinds.add("null")
            else:
                kinds.add(_KINDS.get(outer.lower(), "anything"))
                if outer in ("List", "list"):
                    self._types(node.slice, scope, set(), choices, models)
            return
        name = getattr(node, "id", "") or ast.unparse(node)
        alias = scope.module.values.get(name)
        if isinstance(alias, ast.Subscript):
            self._types(alias, scope, kinds, choices, models)
            return
        found = self._reader.value(node, scope) if isinstance(node, ast.Name) else UNKNOWN
        if isinstance(found, Class) and self.is_model(found):
            kinds.add("object")
            models.append(found)
        elif isinstance(found, Class) and any(
            "Enum" in ast.unparse(base) for base in found.node.bases
        ):
            members = [n for n in found.node.body if isinstance(n, ast.Assign)]
            values = [self._reader.value(n.value, Scope(found.module)) for n in members]
            choices.extend(dict.fromkeys(values))
            kinds.update(kind_of(choice) for choice in choices)
        else:
            kinds.add(_KINDS.get(name.lower(), "anything"))
