"""Scanning options the way C programs do: up to the first operand.

Source: POSIX.1-2017, Utility Conventions, section 12.2, with GNU long options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.arguments import alone, joined, separate
from dsguard.launch.scan import Scan, Scanner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.launch.context import Argument, Command, Word
    from dsguard.launch.options import Option, OptionTable


def scan_getopt(command: Command, words: Sequence[Word], table: OptionTable) -> Scan:
    """Read options up to the first operand, as C programs do.

    The tables of these programs are not complete: an unlisted option is remembered as
    ``strange``, is taken for a flag and refuses nothing.
    """
    return _Getopt(command, words, table).scan()


class _Getopt(Scanner):
    ended = False

    def scan(self) -> Scan:
        while self.at < len(self.words) and not self.ended:
            word = self.words[self.at]
            if word.text == "--":
                self.at += 1
                break
            if len(word.text) < 2 or word.text[0] != "-":
                break
            self.at += 1
            if word.text in self.table.by_name or word.text.startswith("--"):
                self._long(word)
            else:
                self._short(word, 1)
        script = self.words[self.at] if self.at < len(self.words) and not self.ended else None
        return self.result(script, self.words[self.at + (script is not None) :])

    def _long(self, word: Word) -> None:
        name, equals, _ = word.text.partition("=")
        option = self.table.by_name.get(word.text) or self.table.by_name.get(name)
        if option is None and name.startswith("--"):
            candidates = self.abbreviated(name)
            option = self.table.by_name[candidates[0]] if len(candidates) == 1 else None
        if option is None:
            self.strange = word
        elif equals and word.text not in self.table.by_name:
            self._take(option, joined(self.command, word, name, len(name) + 1, option.dest))
        elif option.convert is None or option.optional:
            self._take(option, alone(self.command, word, name, option.dest))
        else:
            self._following(option, word)

    def _short(self, word: Word, at: int) -> None:
        """The options in ``-abc`` from position ``at`` on; a value takes the rest of the word."""
        while at < len(word.text) and not self.ended:
            name = "-" + word.text[at]
            option = self.table.by_name.get(name)
            if option is None:
                self.strange = word
                return
            at += 1
            if option.convert is None:
                self._take(option, alone(self.command, word, name, option.dest))
            elif at < len(word.text):
                self._take(option, joined(self.command, word, name, at, option.dest))
                return
            else:
                self._following(option, word)
                return

    def _following(self, option: Option, word: Word) -> None:
        if self.at >= len(self.words):
            self.strange = word
            return
        self._take(option, separate(self.command, word, self.words[self.at], option.dest))
        self.at += 2 if option.pair else 1

    def _take(self, option: Option, argument: Argument) -> None:
        self.arguments.append(argument)
        self.ended = option.last
