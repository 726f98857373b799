"""What the modules of the linter's rules say, and the index that is made of it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any

import dsguard.rules
from dsguard.facts.case import Case
from dsguard.model.rule import Rule, RuleMeta
from dsguard.rules import conditions, rule_of

INDEX = "src/dsguard/rules/_index.py"

_HEAD = '''"""What dsguard knows of its rules without importing them.

Made from the modules of the rules by tools/generate.py.
"""

# fmt: off
# ruff: noqa: E501
from dsguard.model.finding import Severity
from dsguard.model.rule import RuleMeta
{imports}
METAS = (
'''


@cache
def linter_rules() -> tuple[Rule[Case], ...]:
    """Every rule of the linter, by code, from its module.

    Raises:
        RuntimeError: two rules share a code or a slug, or one stands under another name or in
            another family than its own.
    """
    rules = sorted((rule_of(name) for name in _modules()), key=lambda rule: rule.meta.code)
    for rule in rules:
        _check(rule)
    for name in ("code", "slug"):
        names = [getattr(rule.meta, name) for rule in rules]
        if len(set(names)) != len(names):
            raise RuntimeError(f"two rules share a {name}: {names}")
    return tuple(rules)


def index_of_rules() -> str:
    """The module that says what there is without importing it."""
    metas = [rule.meta for rule in linter_rules()]
    lines = [f"    {_code(meta)},\n" for meta in metas]
    used = sorted({type(one).__name__ for meta in metas for one in _flat(meta.when)})
    names = "".join(f"    {name},\n" for name in used)
    imports = f"from dsguard.rules.conditions import (\n{names})\n"
    return _HEAD.format(imports=imports) + "".join(lines) + ")\n"


def _modules() -> Iterator[str]:
    for family in pkgutil.iter_modules(dsguard.rules.__path__, "dsguard.rules."):
        if family.ispkg:
            package = importlib.import_module(family.name)
            for module in pkgutil.iter_modules(package.__path__, f"{family.name}."):
                if not module.name.rpartition(".")[2].startswith("_"):
                    yield module.name


def _check(rule: Rule[Case]) -> None:
    meta = rule.meta
    if not re.fullmatch(r"DSG\d{3}", meta.code):
        raise RuntimeError(f"a rule code is DSG and three digits, not {meta.code!r}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", meta.slug):
        raise RuntimeError(f"a slug is kebab-case, not {meta.slug!r}")
    if rule.module.split(".")[-2] != meta.family:
        raise RuntimeError(f"{meta.code} is a code of the family {meta.family}, not {rule.module}")


def _flat(when: tuple[Any, ...]) -> Iterator[conditions.Condition]:
    """The conditions, with those inside another one."""
    for one in when:
        yield one
        yield from _flat(tuple(name for name in one.names if hasattr(name, "met")))


def _code(value: Any) -> str:
    """A value as Python; the members of enums by their values, which compare equal."""
    if isinstance(value, RuleMeta):
        parts = [repr(value.code), repr(value.slug), repr(value.summary), str(value.severity)]
        parts.append(repr(value.since))
        parts += [
            f"{name}={_code(getattr(value, name))}"
            for name in ("needs", "oracle", "when")
            if getattr(value, name)
        ]
        return f"RuleMeta({', '.join(parts)})"
    if isinstance(value, conditions.Condition):
        return f"{type(value).__name__}({', '.join(map(_code, value.names))})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_code, value))}{',' * (len(value) == 1)})"
    return repr(value.value if isinstance(value, Enum) else value)
