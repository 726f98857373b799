from __future__ import annotations

import pytest

from dsguard.launch.arguments import read_arguments
from dsguard.launch.context import Command


def read(text: str) -> tuple[list[tuple[str, str, str | None]], list[str]]:
    command = Command.of_text(text)
    arguments = read_arguments(command, command.words)
    given = [(a.name, a.flag, a.value) for a in arguments]
    return given, [word.text for word in arguments.positionals]


@pytest.mark.parametrize(
    ("text", "arguments", "positionals"),
    [
        ("--lr 3", [("lr", "--lr", "3")], []),
        ("--lr=3", [("lr", "--lr", "3")], []),
        ("--a-b 1 --a_b 2", [("a_b", "--a-b", "1"), ("a_b", "--a_b", "2")], []),
        ("--bf16 --fp16", [("bf16", "--bf16", None), ("fp16", "--fp16", None)], []),
        ("--bf16", [("bf16", "--bf16", None)], []),
        ("--no-cache x", [("no_cache", "--no-cache", "x")], []),
        ("--lr -1e-4", [("lr", "--lr", "-1e-4")], []),
        ("--x -5 --y -.5", [("x", "--x", "-5"), ("y", "--y", "-.5")], []),
        ("-5 x", [], ["-5", "x"]),
        ("-c cfg -x=3 -v", [("c", "-c", "cfg"), ("x", "-x", "3"), ("v", "-v", None)], []),
        ("model=a +b=c ~d", [], ["model=a", "+b=c", "~d"]),
        ("--data a b c", [("data", "--data", "a")], ["b", "c"]),
        ("--json '{\"a\": 1}'", [("json", "--json", '{"a": 1}')], []),
        ("--args '-x y'", [("args", "--args", "-x y")], []),
        ("--empty= --e ''", [("empty", "--empty", ""), ("e", "--e", "")], []),
        ("a -- --b c", [], ["a", "--b", "c"]),
        ("--b -- c", [("b", "--b", None)], ["c"]),
        ("- x", [], ["-", "x"]),
    ],
)
def test_arguments_without_knowing_the_parser(
    text: str, arguments: list[tuple[str, str, str | None]], positionals: list[str]
) -> None:
    assert read(text) == (arguments, positionals)


def test_the_last_of_several_counts() -> None:
    command = Command.of_text("--lr 1 --lr=2 --rate 3")
    arguments = read_arguments(command, command.words)
    last = arguments.get("lr")
    assert last is not None
    assert last.value == "2"
    assert arguments.get("lr", "rate") is not last
    assert arguments.get("absent") is None


@pytest.mark.parametrize(
    ("words", "place", "value"),
    [
        (["--lr", "3"], "--lr 3", "3"),
        (["--lr=3"], "--lr=3", "3"),
        (["--lr=a b"], "'--lr=a b'", "a b"),
        (["--lr=a'b"], "'--lr=a'\"'\"'b'", "a'\"'\"'b"),
        (["--lr"], "--lr", "--lr"),
    ],
)
def test_places_of_argument_and_value(words: list[str], place: str, value: str) -> None:
    command = Command.of_words(words)
    (argument,) = read_arguments(command, command.words)
    source = command.source
    assert source.slice(argument.location.span) == place
    assert source.slice(argument.value_location.span) == value


def test_unknown_words_are_told_apart() -> None:
    command = Command.of_text("--lr $LR --bs=$B $EXTRA --x 1")
    arguments = read_arguments(command, command.words)
    assert [(a.name, a.known) for a in arguments] == [("lr", False), ("bs", False), ("x", True)]
    assert not arguments.complete
    full = Command.of_text("--lr 1 x")
    assert read_arguments(full, full.words).complete
