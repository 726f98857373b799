"""Bytes to :class:`~dsguard.model.tree.Document`.

:mod:`~dsguard.reading.load` gets the bytes and makes them text, :mod:`~dsguard.reading.hjson`
reads the text as DeepSpeed does, and :mod:`~dsguard.reading.strict` says what a strict JSON
reader would do.
"""

from dsguard.reading.errors import HjsonSyntaxError, ReadError
from dsguard.reading.hjson import parse
from dsguard.reading.load import load_bytes, load_path

__all__ = ["HjsonSyntaxError", "ReadError", "load_bytes", "load_path", "parse"]
