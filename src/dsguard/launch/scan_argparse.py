"""Scanning options the way Python's ``argparse`` does.

For launchers whose parser has two positionals, the script and ``nargs=REMAINDER`` behind it.
Source: CPython ``Lib/argparse.py`` (``_parse_optional``, ``_get_option_tuples``,
``consume_optional``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.launch.arguments import alone, flag_name, joined, separate
from dsguard.launch.context import Argument, Command, LaunchTrouble, TroubleKind, Word
from dsguard.launch.scan import Scan, Scanner
from dsguard.model.source import Location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.launch.options import Option, OptionTable


def scan_argparse(command: Command, words: Sequence[Word], table: OptionTable) -> Scan:
    """Read options, then the script, then its arguments, as ``argparse`` does.

    The table's parser must have exactly two positionals, the second ``nargs=REMAINDER``.
    """
    return _Argparse(command, words, table).scan()


class _Seen(Struct, frozen=True):
    """What a word that looks like an option may be.

    ``start`` is where in the word a value attached to the flag starts; None without one.
    """

    flag: str
    start: int | None
    options: tuple[Option, ...]
    names: tuple[str, ...]


class _Argparse(Scanner):
    def scan(self) -> Scan:
        dashes = False
        while self.at < len(self.words):
            word = self.words[self.at]
            if word.text == "--" and not dashes:
                dashes = True
                self.at += 1
                continue
            seen = None if dashes else self._recognise(word)
            if seen is None:
                if not dashes and self._holds_options(word):
                    self.hide(word)
                    self.at += 1
                    continue
                return self._with_script(word, dashes)
            self.at += 1
            self._option(word, seen)
        if not self.troubles and self.hidden is None:
            message = "the command names no script to start"
            location = Location(self.command.source, self.command.span)
            self.troubles.append(LaunchTrouble("no-script", message, location, True))
        return self.result(None, ())

    def _with_script(self, script: Word, dashes: bool) -> Scan:
        rest = self.words[self.at + 1 :]
        # The pattern of the script's positional also takes a first "--" right behind it.
        if not dashes and rest and rest[0].text == "--":
            rest = rest[1:]
        elif not dashes:
            self._warn_of_abbreviations(rest)
        return self.result(script, rest)

    def _refuse(self, kind: TroubleKind, message: str, word: Word) -> None:
        self.troubles.append(LaunchTrouble(kind, message, self.command.locate(word), True))

    def _recognise(self, word: Word) -> _Seen | None:
        """The option a word may be; None for a positional (``_parse_optional``)."""
        written = word.text
        if len(written) < 2 or written[0] != "-":
            return None
        by_name = self.table.by_name
        if written in by_name:
            return _Seen(written, None, (by_name[written],), (written,))
        name, equals, _ = written.partition("=")
        start = len(name) + 1 if equals else None
        if equals and name in by_name:
            return _Seen(name, start, (by_name[name],), (name,))
        if written.startswith("--"):
            names = self.abbreviated(name)
            if names:
                return _Seen(name, start, tuple(by_name[n] for n in names), names)
        elif written[:2] in by_name:
            return _Seen(written[:2], 2, (by_name[written[:2]],), (written[:2],))
        if " " in written or _is_negative_number(written):
            return None
        return _Seen(written, None, (), ())

    def _option(self, word: Word, seen: _Seen) -> None:
        """Take an option and its value; ``self.at`` is behind the option's word."""
        if not word.known and not self._known_flag(seen):
            self.hide(word)
            return
        if not seen.options:
            self._unknown(word, seen)
            return
        if len(seen.options) > 1:
            could = ", ".join(seen.names)
            self._refuse("ambiguous-option", f"{seen.flag} could be any of {could}", word)
            return
        option = seen.options[0]
        if option.removed:
            message = f"{option.names[0]} is gone since {option.removed}"
            self._refuse("removed-option", message, word)
        if option.convert is None:
            self._flag(word, option, seen)
        elif seen.start is not None:
            argument = joined(self.command, word, seen.flag, seen.start, option.dest)
            self._value(option, argument, word)
        elif self._value_follows():
            value = self.words[self.at]
            self.at += 1
            self._value(option, separate(self.command, word, value, option.dest), word)
        else:
            self._refuse("missing-value", f"{seen.flag} expects one argument", word)

    def _unknown(self, word: Word, seen: _Seen) -> None:
        """An option that is not listed; written with the wrong dashes, it is read as meant."""
        name, equals, _ = seen.flag.partition("=")
        meant = "--" + flag_name(name)
        option = self.table.by_name.get(meant)
        if option is None or option.removed:
            self._refuse("unknown-option", f"unrecognized option {name}", word)
            return
        message = f"unrecognized option {name}: it is spelled {meant}"
        self._refuse("misspelled-option", message, word)
        self._option(word, _Seen(name, len(name) + 1 if equals else None, (option,), ()))

    def _flag(self, word: Word, option: Option, seen: _Seen) -> None:
        """A flag; several short ones may share a word, the last of them with a value."""
        self.arguments.append(alone(self.command, word, seen.flag, option.dest))
        if option.dest == "help":
            self._refuse("help-instead-of-launch", "only the help is printed", word)
        if seen.start is None:
            return
        tail = word.text[seen.start :]
        following = self.table.by_name.get("-" + tail[:1])
        if seen.flag.startswith("--") or following is None:
            self._refuse("unexpected-value", f"{seen.flag} takes no value", word)
            return
        start = seen.start + 1 if tail[1:] else None
        self._option(word, _Seen("-" + tail[0], start, (following,), ()))

    def _value(self, option: Option, argument: Argument, word: Word) -> None:
        self.arguments.append(argument)
        value = argument.value
        if not argument.known or value is None or option.convert is None:
            return
        try:
            option.convert(value)
        except ValueError:
            self._refuse("bad-value", f"{argument.flag} cannot be {value!r}", word)
            return
        if option.choices and value not in option.choices:
            choices = ", ".join(option.choices)
            message = f"{argument.flag} cannot be {value!r}; it is one of {choices}"
            self._refuse("bad-value", message, word)

    def _value_follows(self) -> bool:
        if self.at >= len(self.words):
            return False
        following = self.words[self.at]
        return following.text != "--" and self._recognise(following) is None

    def _known_flag(self, seen: _Seen) -> bool:
        """Whether only the value of a word is the shell's business."""
        return bool(seen.options) and "$" not in seen.flag and "`" not in seen.flag

    def _holds_options(self, word: Word) -> bool:
        """Whether an unknown word rather holds options than the script.

        It does where the next word that is known is a Python file or an option of this launcher.
        """
        if word.known or word.text.endswith(".py"):
            return False
        following = next((w for w in self.words[self.at + 1 :] if w.known), None)
        if following is None:
            return False
        seen = self._recognise(following)
        return following.text.endswith(".py") if seen is None else len(seen.options) == 1

    def _warn_of_abbreviations(self, rest: Sequence[Word]) -> None:
        """Up to Python 3.13.0 even the script's words are matched, and ambiguous ones stop."""
        for word in rest:
            if word.text == "--":
                return
            seen = self._recognise(word)
            if seen is not None and len(seen.options) > 1:
                could = ", ".join(seen.names)
                message = (
                    f"the launcher takes the script's {seen.flag} for any of {could} "
                    "and stops, with Python 3.13.0 and older"
                )
                self.troubles.append(
                    LaunchTrouble(
                        "ambiguous-script-argument", message, self.command.locate(word), False
                    )
                )
                return


def _is_negative_number(word: str) -> bool:
    may_be = word[1] == "." or word[1].isdecimal()
    return may_be and re.fullmatch(r"-\d+|-\d*\.\d+", word) is not None
