"""What has been found so far while a script is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from dsguard.script.loop.notes import Notes
from dsguard.script.script import Gap, ParserKind, SetupCall

if TYPE_CHECKING:
    import ast

    from dsguard.script.declaration import Declaration
    from dsguard.script.module import LocalModule
    from dsguard.script.objects import Class, Parser


class CommandFunction(Struct, frozen=True):
    """The arguments of a typer or click command."""

    kind: ParserKind
    declarations: tuple[Declaration, ...]


class Reading(Struct):
    """Collects parsers, commands, calls and gaps.

    ``doubt`` says why what is read at the moment may not happen in a run, empty where it does.
    ``reached`` is False while functions are read that nothing calls in sight: a parser made
    there (``unreached``) counts only where no other is found. ``dataclasses`` are those
    given to a parser. ``replaced`` are the fields that ``dataclasses.replace`` sets.
    ``hands_on_rest`` is what :class:`~dsguard.script.script.Script` calls so.
    ``inherited`` counts what parsers took over from their parents. ``loop`` collects what is
    done with engines.
    """

    parsers: list[Parser] = field(default_factory=list)
    unreached: list[Parser] = field(default_factory=list)
    commands: list[CommandFunction] = field(default_factory=list)
    named_only: list[ParserKind] = field(default_factory=list)
    dataclasses: list[Class] = field(default_factory=list)
    setups: list[SetupCall] = field(default_factory=list)
    replaced: set[str] = field(default_factory=set)
    inherited: int = 0
    adds_deepspeed_arguments: bool = False
    hands_on_rest: bool = False
    gaps: dict[tuple[str, LocalModule], Gap] = field(default_factory=dict)
    loop: Notes = field(default_factory=Notes)
    doubt: str = ""
    reached: bool = True

    def gap(self, reason: str, module: LocalModule, node: ast.AST) -> None:
        """Note a place that could not be read; of one reason the first place in a module."""
        self.gaps.setdefault((reason, module), Gap(reason, module.locate(node)))

    def add_parser(self, parser: Parser) -> Parser:
        """Note a parser that the script makes."""
        (self.parsers if self.reached else self.unreached).append(parser)
        return parser
