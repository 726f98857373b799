"""Random command lines for a launcher, and what its real parser makes of them."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import random
from collections.abc import Callable
from dataclasses import dataclass

from dsguard.launch.context import Command
from dsguard.launch.options import Option, OptionTable
from dsguard.launch.scan import Scan
from dsguard.launch.scan_argparse import scan_argparse

_VALUES = ("1", "2", "-1", "x", "", "1.5", "a b", "-x y", "no", "true", "-q", "--", "1:2", "007")
_SCRIPT_WORDS = ("--lr", "3", "--log", "--num", "-m", "--", "x", "--nproc=1", "-1", "--module")


@dataclass(frozen=True)
class Parsed:
    """The outcome of a real parser: None where it exits."""

    script: str
    rest: list[str]
    options: dict[str, object]


def run_parser(
    parse: Callable[[list[str]], argparse.Namespace], words: list[str], script: str, rest: str
) -> Parsed | None:
    """What an ``argparse`` parser makes of the words."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            namespace = vars(parse(words))
        except SystemExit:
            return None
    return Parsed(namespace.pop(script), namespace.pop(rest), namespace)


def option_words(random_: random.Random, option: Option) -> list[str]:
    """One option, spelled in one of the ways people spell it, now and then wrongly."""
    name = random_.choice(option.names)
    if random_.random() < 0.3:
        name = name[: random_.randint(min(3, len(name)), len(name))]
    if random_.random() < 0.05:
        name = name.replace("_", "-")
    if option.convert is None:
        return [f"{name}=1"] if random_.random() < 0.05 else [name]
    value = random_.choice(option.choices or _VALUES)
    if random_.random() < 0.1:
        value = random_.choice(_VALUES)
    style = random_.random()
    if style < 0.05:
        return [name]
    # argparse before 3.13 forgets a joined value of "--": nobody means that.
    if style < 0.5 or value == "--":
        return [name, value]
    return [name + ("" if name[1] != "-" and style < 0.75 else "=") + value]


def random_words(random_: random.Random, table: OptionTable) -> list[str]:
    """Options, then mostly a script and its words."""
    words: list[str] = []
    for _ in range(random_.randint(0, 4)):
        words += option_words(random_, random_.choice(table.options))
    if random_.random() < 0.05:
        words.append(random_.choice(("--unknown", "--unknown=1", "-z", "--", "-mq", "-qt3")))
    if random_.random() < 0.95:
        words.append(random_.choice(("train.py", "pkg.train", "-", "a b")))
        words += random_.choices(_SCRIPT_WORDS, k=random_.randint(0, 4))
    return words


def scan(words: list[str], table: OptionTable) -> Scan:
    command = Command.of_words(words)
    return scan_argparse(command, command.words, table)


@functools.cache
def looks_into_script_words() -> bool:
    """Whether this Python's argparse refuses ambiguous options even behind the script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log_a")
    parser.add_argument("--log_b")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    return run_parser(parser.parse_args, ["t.py", "--log"], "script", "rest") is None


def disagreement(
    words: list[str], table: OptionTable, parsed: Parsed | None, defaults: Parsed
) -> str:
    """How our scan differs from the real parser; empty where it does not."""
    ours = scan(words, table)
    stops = [trouble.kind for trouble in ours.troubles if trouble.refused]
    if looks_into_script_words():
        stops += [t.kind for t in ours.troubles if t.kind == "ambiguous-script-argument"]
    if parsed is None or stops:
        return "" if (parsed is None) == bool(stops) else f"{words}: {parsed} but {stops}"
    if ours.script is None or ours.script.text != parsed.script:
        return f"{words}: script {parsed.script}, not {ours.script}"
    if [word.text for word in ours.rest] != parsed.rest:
        return f"{words}: rest {parsed.rest}, not {ours.rest}"
    for dest, value in parsed.options.items():
        argument = ours.last(dest)
        if argument is None:
            if value != defaults.options[dest]:
                return f"{words}: {dest} is {value}, not absent"
        elif argument.value is not None and type(value) in (str, int, float):
            option = next(o for o in table.options if o.dest == dest)
            assert option.convert is not None
            if option.convert(argument.value) not in (value, None):
                return f"{words}: {dest} is {value!r}, not {argument.value!r}"
    return ""


def listed(parser: argparse.ArgumentParser) -> dict[str, tuple[str, bool, str, tuple[str, ...]]]:
    """Every spelling in a real parser: its dest, whether it takes a value, type and choices."""
    spellings = {}
    for action in parser._actions:
        kind = getattr(action.type, "__name__", "str") if action.nargs != 0 else "flag"
        for name in action.option_strings:
            choices = tuple(map(str, action.choices or ()))
            spellings[name] = (action.dest, action.nargs != 0, kind, choices)
    return spellings


def tabled(table: OptionTable) -> dict[str, tuple[str, bool, str, tuple[str, ...]]]:
    """The same of our table, without options that the newest release has dropped."""
    return {
        name: (
            option.dest,
            option.convert is not None,
            getattr(option.convert, "__name__", "flag"),
            option.choices,
        )
        for name, option in table.by_name.items()
        if not option.removed
    }
