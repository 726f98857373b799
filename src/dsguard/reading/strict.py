"""Where ``json.load`` would stop, or would read another value than HJSON.

Plain DeepSpeed reads its config as HJSON; transformers, Accelerate and Lightning read the
same file with Python's :mod:`json`. The HJSON reader tells :class:`Deviations` what it meets,
and this module knows what :mod:`json` would make of it.
"""

from __future__ import annotations

import re

from dsguard.model.source import Span
from dsguard.model.tree import Deviation, DeviationKind

_JSON_CONSTANT = r"(NaN|-?Infinity)[ \t]*"


class Deviations:
    """Collects the deviations of one text.

    Comments and missing commas are told by the structure of the text, the rest by single
    tokens. Where a token can hide structure from HJSON that :mod:`json` sees (see
    :meth:`bare_string`), :meth:`settled` asks :mod:`json` itself.
    """

    def __init__(self) -> None:
        self._found: list[Deviation] = []
        self._hides_structure: Span | None = None

    def stop(self, kind: DeviationKind, span: Span, detail: str = "") -> None:
        """``json.load`` stops here."""
        self._found.append(Deviation(kind, span, stops=True, detail=detail))

    def number(self, span: Span, text: str, value: int | float) -> None:
        """A number written with a fraction, an exponent or foreign digits, as HJSON read it."""
        if not text.isascii():
            self.stop(DeviationKind.NUMBER, span, "JSON has no digits other than 0 to 9")
        elif isinstance(value, int):
            detail = f"DeepSpeed reads the integer {value}, json.load the float {float(text)!r}"
            self._found.append(Deviation(DeviationKind.NUMBER, span, stops=False, detail=detail))

    def bare_string(self, span: Span, raw: str) -> None:
        """A string without quotes; ``raw`` is all of its line from its first character.

        :mod:`json` reads the words ``NaN``, ``Infinity`` and ``-Infinity`` as floats and goes on
        behind them, while for HJSON commas, brackets and whole members after them belong
        to the string.
        """
        constant = re.match(_JSON_CONSTANT, raw)
        rest = raw[constant.end() :] if constant else raw
        if constant is None or rest[:1] not in ("", ",", "]", "}"):
            self.stop(DeviationKind.BARE_STRING, span)
            return
        if rest:
            self._hides_structure = span
        detail = f"DeepSpeed reads a string, json.load the float {constant[1]}"
        self._found.append(Deviation(DeviationKind.NUMBER, span, stops=False, detail=detail))

    def settled(self, text: str) -> tuple[Deviation, ...]:
        """All deviations in the order of the text."""
        if self._hides_structure is not None:
            self._ask_json(text, self._hides_structure)
        return tuple(sorted(self._found, key=lambda deviation: deviation.span))

    def _ask_json(self, text: str, hidden: Span) -> None:
        import json

        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            stop = Span(error.pos, min(error.pos + 1, len(text)))
        except (ValueError, RecursionError):  # a number or a nesting beyond Python's limits
            stop = hidden
        else:
            self._found = [deviation for deviation in self._found if not deviation.stops]
            return
        if not any(deviation.stops for deviation in self._found):
            self.stop(DeviationKind.OTHER, stop, "json.load reads on behind NaN or Infinity")
