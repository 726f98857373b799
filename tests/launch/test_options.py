"""The scanners themselves, on a small table."""

from __future__ import annotations

import argparse
import random

import pytest

from dsguard.launch.context import Command, LaunchTrouble
from dsguard.launch.options import OptionTable, flag, getopt, integer, number, text
from dsguard.launch.scan import Scan
from dsguard.launch.scan_argparse import scan_argparse
from dsguard.launch.scan_getopt import scan_getopt
from dsguard.model.fact import Known, Unknown

from .random_options import disagreement, random_words, run_parser

TABLE = OptionTable(
    (
        flag("-h", "--help"),
        integer("-n", "--num_gpus"),
        integer("--num_nodes"),
        text("-t", "--tee"),
        number("--rate"),
        text("--mode", choices=("a", "b")),
        flag("-m", "--module"),
        flag("-q", "--quiet"),
    )
)


def real_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--num_gpus", type=int)
    parser.add_argument("--num_nodes", type=int)
    parser.add_argument("-t", "--tee")
    parser.add_argument("--rate", type=float)
    parser.add_argument("--mode", choices=["a", "b"])
    parser.add_argument("-m", "--module", action="store_true")
    parser.add_argument("-q", "--quiet", action="store_true")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    return parser


def scan(command_text: str, table: OptionTable = TABLE) -> Scan:
    command = Command.of_text(command_text)
    return scan_argparse(command, command.words, table)


def test_random_option_lists_are_read_as_argparse_reads_them() -> None:
    parser = real_parser()
    generator = random.Random(7)
    defaults = run_parser(parser.parse_args, ["t.py"], "script", "rest")
    assert defaults is not None
    accepted = 0
    for _ in range(3000):
        words = random_words(generator, TABLE)
        parsed = run_parser(parser.parse_args, words, "script", "rest")
        accepted += parsed is not None
        assert disagreement(words, TABLE, parsed, defaults) == ""
    assert 500 < accepted < 2500


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        ("--what t.py", "unknown-option", "unrecognized option --what"),
        ("--num-gpus 2 t.py", "misspelled-option", "--num-gpus: it is spelled --num_gpus"),
        ("--num 2 t.py", "ambiguous-option", "--num_gpus, --num_nodes"),
        ("--num_gpus", "missing-value", "--num_gpus expects one argument"),
        ("--num_gpus --module t.py", "missing-value", "--num_gpus expects one argument"),
        ("--num_gpus -- 2 t.py", "missing-value", "--num_gpus expects one argument"),
        ("--num_gpus two t.py", "bad-value", "--num_gpus cannot be 'two'"),
        ("-n2.5 t.py", "bad-value", "-n cannot be '2.5'"),
        ("--mode c t.py", "bad-value", "it is one of a, b"),
        ("--module=1 t.py", "unexpected-value", "--module takes no value"),
        ("-mx t.py", "unexpected-value", "-m takes no value"),
        ("--help", "help-instead-of-launch", "only the help is printed"),
        ("--num_gpus 2", "no-script", "the command names no script to start"),
        ("", "no-script", "the command names no script to start"),
    ],
)
def test_what_argparse_refuses(words: str, kind: str, message: str) -> None:
    trouble, *_ = scan(words).troubles
    assert (trouble.kind, trouble.refused) == (kind, True)
    assert message in trouble.message


def test_an_option_with_the_wrong_dashes_is_read_as_meant() -> None:
    found = scan("--num-gpus=2 t.py")
    assert found.script is not None
    assert found.script.text == "t.py"
    assert isinstance(found.integer("num_gpus"), Known)


def test_a_trouble_points_at_its_word() -> None:
    found = scan("-q --what t.py")
    (trouble,) = found.troubles
    assert isinstance(trouble, LaunchTrouble)
    assert trouble.location.source.slice(trouble.location.span) == "--what"


@pytest.mark.parametrize(
    ("words", "script", "rest"),
    [
        ("t.py a --num_gpus 3", "t.py", ["a", "--num_gpus", "3"]),
        ("-n 2 -- t.py -- x", "t.py", ["--", "x"]),
        ("t.py -- --x", "t.py", ["--x"]),
        ("-q t.py x -- y", "t.py", ["x", "--", "y"]),
        ("-- --num_gpus 2", "--num_gpus", ["2"]),
        ("-n -1 t.py", "t.py", []),
        ("--tee '-a b' t.py", "t.py", []),
    ],
)
def test_where_the_script_starts(words: str, script: str, rest: list[str]) -> None:
    found = scan(words)
    assert found.script is not None
    assert found.script.text == script
    assert [word.text for word in found.rest] == rest


@pytest.mark.parametrize(
    ("words", "script", "gpus", "nodes"),
    [
        ("--num_gpus $N t.py", "t.py", None, "absent"),
        ("--num_gpus=$N t.py", "t.py", None, "absent"),
        ("$ARGS t.py", "t.py", None, None),
        ("--num_gpus 2 $ARGS t.py", "t.py", None, None),
        ("$ARGS --num_gpus 2 t.py", "t.py", 2, None),
        ("-n 1 $MORE $SCRIPT --lr 3", "$MORE", 1, "absent"),
        ("-n 1 $SCRIPT --lr 3", "$SCRIPT", 1, "absent"),
        ("-n 1 $DIR/train.py x.py", "$DIR/train.py", 1, "absent"),
        ("-n 1 --$FLAG t.py", "t.py", None, None),
    ],
)
def test_words_that_only_the_shell_knows(
    words: str, script: str, gpus: int | None, nodes: str | None
) -> None:
    found = scan(words)
    assert not found.troubles
    assert found.script is not None
    assert found.script.text == script
    fact = found.integer("num_gpus")
    assert fact == Unknown(fact.reason) if gpus is None else isinstance(fact, Known)  # type: ignore[union-attr]
    other = found.integer("num_nodes")
    assert other is None if nodes == "absent" else isinstance(other, Unknown)


def test_the_reason_names_the_variable() -> None:
    for words, reason in (
        ("--num_gpus $NPROC t.py", "--num_gpus depends on the shell variable NPROC"),
        ("-n ${NPROC:-4} t.py", "-n depends on the shell variable NPROC"),
        ("-n $(count) t.py", "-n depends on the output of a command"),
        ("$ARGS t.py", "$ARGS may hold options, and only the shell knows it"),
    ):
        assert scan(words).integer("num_gpus") == Unknown(reason)


def test_no_arithmetic_with_absurd_numbers() -> None:
    assert isinstance(scan("-n 99999999999 t.py").integer("num_gpus"), Unknown)


GETOPT = getopt("-n|--ntasks: -q|--quiet -x::  -mca:+ -c: --nodes: --nodefile:", last=("-c",))


@pytest.mark.parametrize(
    ("words", "given", "script", "rest"),
    [
        ("-n 4 p a", [("ntasks", "4")], "p", ["a"]),
        ("-n4 -q p", [("ntasks", "4"), ("quiet", None)], "p", []),
        ("-qn4 p", [("quiet", None), ("ntasks", "4")], "p", []),
        ("--ntasks=4 p", [("ntasks", "4")], "p", []),
        ("--nt 4 p", [("ntasks", "4")], "p", []),
        ("-mca a b p", [("mca", "a")], "p", []),
        ("-q -- -n p", [("quiet", None)], "-n", ["p"]),
        ("-c code -n 3", [("c", "code")], None, ["-n", "3"]),
        ("-q - x", [("quiet", None)], "-", ["x"]),
        ("p -n 4", [], "p", ["-n", "4"]),
        ("-q", [("quiet", None)], None, []),
    ],
)
def test_getopt(
    words: str, given: list[tuple[str, str | None]], script: str | None, rest: list[str]
) -> None:
    command = Command.of_text(words)
    found = scan_getopt(command, command.words, GETOPT)
    assert [(a.name, a.value) for a in found.arguments] == given
    assert (found.script.text if found.script else None) == script
    assert [word.text for word in found.rest] == rest
    assert found.strange is None
    assert not found.troubles


@pytest.mark.parametrize("words", ["--new p", "-z p", "--no 4 p", "-qz p", "-n"])
def test_getopt_remembers_what_it_does_not_know(words: str) -> None:
    command = Command.of_text(words)
    assert scan_getopt(command, command.words, GETOPT).strange is not None
