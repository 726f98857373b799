"""Commands that change variables: assignments, declarations and the builtins that set them.

Source: Bash Reference Manual, sections 3.4 (parameters), 4.1, 4.2 and 4.3 (builtins).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dsguard.launch.shell.expand import Expander, Field
from dsguard.launch.shell.state import Array, Content, State, Variable
from dsguard.launch.shell.syntax import Assignment, Simple
from dsguard.launch.shell.text import Chunk, Value, is_known, text_of
from dsguard.launch.words import Word

Handler: TypeAlias = Callable[[Expander, Simple, list[Field]], None]
"""What a builtin does: its command as parsed, and its words after expansion."""

_CHANGED = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s*(?:[-+*/%&|^]?=(?!=)|\+\+|--)", re.ASCII)
_CHANGED_FIRST = re.compile(r"(?:\+\+|--)\s*([A-Za-z_]\w*)", re.ASCII)


def assign(expander: Expander, assignment: Assignment, *, export: bool = False) -> None:
    """``name=value`` and its other forms."""
    content = None if assignment.indexed else _assigned(expander, assignment)
    place = expander.text.places(assignment.start, assignment.end)[-1]
    expander.state.assign(assignment.name, content, place, export=export)


def declare(
    expander: Expander,
    node: Simple,
    fields: Sequence[Field],
    local: dict[str, Variable | None] | None,
) -> None:
    """``export``, ``declare`` and their like; ``local`` keeps what a function's locals hide."""
    state = expander.state
    keyword, *texts = [text_of(field.chunks) for field in fields]
    options = "".join(text[1:] for text in texts if text.startswith("-"))
    # Integers, lower case, references: what is assigned is not what is written.
    strange = any(letter in options for letter in "iluncA")
    export = keyword == "export" or "x" in options
    if keyword in ("export", "readonly") or "g" in options:
        local = None
    bare = [text for text in texts if text.isidentifier()]
    if local is not None:
        for name in (*(a.name for a in node.assignments), *bare):
            local.setdefault(name, state.variables.get(name))
    for assignment in node.assignments:
        assign(expander, assignment, export=export)
        if strange:
            state.forget(assignment.name)
    for name in bare:
        before = state.variables.get(name)
        if local is not None:
            state.variables[name] = Variable((), unset=True)
        elif export and before is not None:
            exported = "n" not in options
            state.variables[name] = Variable(before.content, exported, before.unset, before.place)


def calculate(expression: str, state: State) -> None:
    """``((expression))``: what it changes is not known afterwards."""
    for found in (*_CHANGED.finditer(expression), *_CHANGED_FIRST.finditer(expression)):
        state.forget(found[1])


def set_positionals(state: State, arguments: Sequence[Field] | None) -> None:
    """Set ``$1`` and so on, up to the first argument that may be several; None for unknown ones."""
    given: list[Value] = []
    state.more_positionals = arguments is None
    for argument in arguments or ():
        if not argument.single:
            state.more_positionals = True
            break
        given.append(argument.chunks)
    state.positionals = tuple(given)


def exported(state: State) -> tuple[Word, ...]:
    """The variables that a command gets, as ``NAME=value`` words."""
    words: list[Word] = []
    for name, variable in state.variables.items():
        content = variable.content
        if variable.exported is False or variable.unset or isinstance(content, Array):
            continue
        if content is None or variable.exported is None:
            words.append(Word(f"{name}=${name}", variable.place, False))
        else:
            words.append(Word(f"{name}={text_of(content)}", variable.place, is_known(content)))
    return tuple(words)


def _assigned(expander: Expander, assignment: Assignment) -> Content:
    """What a variable holds after an assignment."""
    content: Content = ()
    if assignment.items is not None:
        content = expander.array(assignment.items)
    elif assignment.value is not None:
        content = expander.value(assignment.value)
    before = expander.state.variables.get(assignment.name)
    held = before.content if before is not None and not before.unset else None
    if held is None and (before is None or not before.unset):
        # What was there is not known; what is added to it is.
        places = expander.text.places(assignment.start, assignment.end)
        held = (Chunk(f"${assignment.name}", places, known=False),)
    if content is None or held is None:
        return content
    # What was there is handed on, and measured anew, chunk by chunk.
    if isinstance(held, Array):
        expander.inserted += sum(map(len, held.items))
        return _array_assigned(held, content, append=assignment.append)
    if not assignment.append:
        return content
    expander.inserted += len(held)
    if isinstance(content, Array):
        return Array((held, *content.items), content.counted and is_known(held))
    return (*held, *content)


def _array_assigned(held: Array, content: Value | Array, *, append: bool) -> Content:
    """An array after an assignment; a plain value goes to its first item."""
    if not isinstance(content, Array):
        return None if append else Array((content, *held.items[1:]), held.counted)
    if not append:
        return content
    return Array((*held.items, *content.items), held.counted and content.counted)


def _set(expander: Expander, node: Simple, fields: list[Field]) -> None:
    """``set``: ``-a`` exports what is assigned from now on, ``--`` sets the positionals."""
    state = expander.state
    texts = [text_of(field.chunks) for field in fields[1:]]
    if any(re.match(r"-[a-z]*a", text) for text in texts) or "allexport" in texts[1:]:
        state.exports_all = texts[0] != "+o"
    elif any(re.match(r"\+[a-z]*a", text) for text in texts):
        state.exports_all = False
    if "--" in texts:
        set_positionals(state, fields[texts.index("--") + 2 :])


def _shift(expander: Expander, node: Simple, fields: list[Field]) -> None:
    state = expander.state
    if state.positionals is None:
        return
    count = text_of(fields[1].chunks) if len(fields) > 1 else "1"
    if not count.isdecimal() or len(count) > 3:
        set_positionals(state, None)
    elif state.more_positionals or int(count) <= len(state.positionals):
        state.positionals = state.positionals[int(count) :]
        expander.inserted += len(state.positionals)


def _unset(expander: Expander, node: Simple, fields: list[Field]) -> None:
    for field in fields[1:]:
        name, bracket, _ = text_of(field.chunks).partition("[")
        if bracket:
            expander.state.forget(name)
        else:
            expander.state.variables[name] = Variable((), unset=True)


def _read(expander: Expander, node: Simple, fields: list[Field]) -> None:
    """``read`` sets what nobody knows.

    It is known of ``IFS=, read -a NAME <<< TEXT`` and of ``read -d '' NAME << EOF``.
    """
    texts = [text_of(field.chunks) for field in fields[1:]]
    names = [text for text in texts if text.isidentifier()]
    for name in names:
        expander.state.forget(name)
    letters = "".join(text[1:] for text in texts if text.startswith("-"))
    if set(letters) - {"r"} == {"d"} and "" in texts and node.documents and len(names) == 1:
        _read_document(expander, node, names[0], raw="r" in letters)
        return
    separators = [a.value for a in node.assignments if a.name == "IFS" and a.value is not None]
    if set(letters) - {"r"} != {"a"} or node.here is None or len(separators) != 1 or not names:
        return
    separator = text_of(expander.value(separators[0]))
    value = expander.value(node.here)
    text = text_of(value)
    if len(separator) != 1 or separator.isspace() or not is_known(value) or "\n" in text:
        return
    places = expander.text.places(node.here.start, node.here.end)
    items = text.removesuffix(separator).split(separator) if text else []
    content = Array(tuple((Chunk(item, places),) if item else () for item in items))
    expander.state.assign(names[-1], content, places[-1])


def _read_document(expander: Expander, node: Simple, name: str, *, raw: bool) -> None:
    """All lines; white space around them goes, unless ``IFS`` is set."""
    lines = expander.document(node.documents[-1])
    if lines is None or node.assignments or (not raw and "\\" in lines.text):
        return
    start = len(lines.text) - len(lines.text.lstrip(" \t\n"))
    content = lines.slice(start, max(len(lines.text.rstrip(" \t\n")), start))
    document = node.documents[-1]
    place = expander.text.places(document.start, document.end)[-1]
    expander.state.assign(name, content, place)


def _set_named(expander: Expander, node: Simple, fields: list[Field]) -> None:
    """``mapfile``, ``getopts`` and their like set the variables that they name."""
    for field in fields[1:]:
        text = text_of(field.chunks)
        if text.isidentifier():
            expander.state.forget(text)
        calculate(text, expander.state)


def _printf(expander: Expander, node: Simple, fields: list[Field]) -> None:
    """``printf -v NAME`` sets a variable."""
    texts = [text_of(field.chunks) for field in fields[1:]]
    if texts[:1] == ["-v"] and len(texts) > 1:
        expander.state.forget(texts[1])


BUILTINS: dict[str, Handler] = {
    "set": _set,
    "shift": _shift,
    "unset": _unset,
    "read": _read,
    "mapfile": _set_named,
    "readarray": _set_named,
    "getopts": _set_named,
    "let": _set_named,
    "printf": _printf,
}
"""The builtins that change variables."""
