"""What ``HfArgumentParser`` makes of dataclasses.

Source: ``transformers/hf_argparser.py``. A flag is spelled with underscores and with hyphens;
a bool may stand alone or be followed by a truth value, and one that is on by default gets a
``--no_…`` counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.script.argparse_arguments import declare
from dsguard.script.dataclass_fields import Field, fields_of
from dsguard.script.declaration import Constant, Declaration, Default, Takes, Unreadable
from dsguard.script.objects import Class, External, Parser, Value, members_of
from dsguard.script.setups import framework_of
from dsguard.script.written import as_parsed

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from dsguard.script.annotations import Shape
    from dsguard.script.expressions import Expressions
    from dsguard.script.module import LocalModule
    from dsguard.script.reading import Reading

_TRUE = frozenset({"yes", "true", "t", "y", "1"})
_FALSE = frozenset({"no", "false", "f", "n", "0"})


def add_dataclasses(
    parser: Parser,
    types: Value,
    node: ast.AST,
    module: LocalModule,
    expressions: Expressions,
    reading: Reading,
) -> None:
    """Add the fields of one dataclass or of a tuple or list of them."""
    for of in members_of(types) or (types,):
        framework = framework_of(of)
        if framework is not None:
            parser.framework = framework
        elif isinstance(of, Class):
            fields = fields_of(of, expressions)
            parser.framework = fields.framework or parser.framework
            reading.dataclasses.append(of)
            for reason in fields.unread:
                reading.gap(reason, of.scope.module, of.node)
            for found in fields.fields.values():
                for declaration in _declarations(found):
                    declare(parser, declaration, reading)
        else:
            name = of.name if isinstance(of, External) else "a class that is not found"
            reading.gap(f"the fields of {name} are not read", module, node)


def _declarations(field: Field) -> Iterator[Declaration]:
    shape = _single(field.shape)
    flags = _spellings(f"--{field.name}", field.name)
    location = field.module.locate(field.node)
    choices, takes = shape.choices or field.choices, Takes.ONE
    default: Default = field.default
    alone: Default = None
    type_name = shape.name
    is_required = field.default is None
    if shape.choices is not None:
        is_required = field.default is None or field.is_made
        default = None if is_required else default
    elif _is_boolean(shape):
        type_name, is_required = "bool", False
        given = None if field.is_made else field.default
        default = _truth(given)
        if shape.name == "bool" or given not in (None, Constant(None)):
            default = Constant(False) if given is None else default
            takes, alone = Takes.OPTIONAL, Constant(True)
    elif shape.name == "list":
        type_name, takes = shape.members[0].name if shape.members else "list", Takes.MANY
        default = default if field.is_made else None
    yield Declaration(
        name=field.name,
        flags=(*flags, *field.aliases),
        default=as_parsed(default, None if shape.choices or type_name == "bool" else type_name),
        location=location,
        type_name=type_name,
        takes=takes,
        alone=alone,
        choices=choices,
        required=is_required,
    )
    if _is_boolean(shape) and field.default == Constant(True) and not field.is_made:
        yield Declaration(
            name=field.name,
            flags=_spellings(f"--no_{field.name}", f"no_{field.name}"),
            default=Constant(False),
            location=location,
            takes=Takes.NOTHING,
            alone=Constant(False),
        )


def _single(shape: Shape) -> Shape:
    """The one type that is left of a union.

    Of a union the parser keeps the member beside ``str``, or beside None; a union with bool
    and None stays what it is.
    """
    if shape.name != "Union":
        return shape
    members = shape.members
    names = [member.name for member in members]
    if "None" not in names:
        return members[0] if names[1] == "str" else members[1]
    if "bool" not in names:
        return members[0] if names[1] == "None" else members[1]
    return shape


def _is_boolean(shape: Shape) -> bool:
    return shape.name == "bool" or (
        shape.name == "Union" and {member.name for member in shape.members} == {"bool", "None"}
    )


def _spellings(flag: str, name: str) -> tuple[str, ...]:
    return (flag, "--" + name.replace("_", "-")) if "_" in name else (flag,)


def _truth(default: Constant | Unreadable | None) -> Default:
    """A bool field's default; a text goes through the parser's own reading of truth values."""
    if isinstance(default, Constant) and isinstance(default.value, str):
        word = default.value.lower()
        if word in _TRUE | _FALSE:
            return Constant(word in _TRUE)
        return Unreadable(f"the text {default.value!r} is no truth value")
    return default
