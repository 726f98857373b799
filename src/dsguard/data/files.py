"""Lengths, modalities and batches from files."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TextIO, TypeAlias

import numpy as np

from dsguard.data.batches import RankBatches
from dsguard.data.lengths import Integers, lengths_array

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = ("length", "lengths", "num_tokens", "n_tokens", "token_count", "tokens", "input_ids")
"""Fields that are looked for where none is named; a list counts as its number of items."""


_MAGIC = b"\x93NUMPY"

_LONGEST_LINE = 16 << 20
"""Characters of a line; a sample of a million tokens takes less than half of that."""


class DataFileError(Exception):
    """A file that cannot be used; ``help`` is the way out."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


class Samples(NamedTuple):
    """Length in tokens of each sample, and its modality where one was asked for."""

    lengths: Integers
    modality: Sequence[str] | None


_LARGEST = int(np.iinfo(np.int64).max)

_Rows: TypeAlias = Iterator[tuple[int, Any]]
"""Line numbers and what stands there."""


def read_samples(path: Path, field: str | None, modality_field: str | None) -> Samples:
    """Read ``.npy``, ``.csv``, ``.parquet``, ``.arrow``, or JSON lines (any other name).

    JSON lines hold a number or an object each; CSV has a header, or one column of numbers.

    Raises:
        DataFileError: it cannot be read, or has no such field.
    """
    _check_regular(path)
    try:
        read = _READERS.get(path.suffix.lower(), _read_jsonl)
        lengths, modality = read(path, field, modality_field)
        return Samples(lengths_array(lengths), modality)
    except OSError as error:
        raise DataFileError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataFileError(
            f"{path} is no text", "name it .npy, .parquet or .arrow if it is one of these"
        ) from None
    except (ValueError, csv.Error) as error:
        raise DataFileError(f"{path}: {error}") from None


def read_rank_batches(path: Path, world_size: int) -> list[RankBatches]:
    """The batches of each rank from JSON lines ``{"rank": 0, "samples": [3, 17]}``, in order.

    Raises:
        DataFileError: it cannot be read, or a line is none of these.
    """
    _check_regular(path)
    batches: list[list[list[int]]] = [[] for _ in range(world_size)]
    try:
        with open(path, encoding="utf-8") as lines:
            for line, row in _json_rows(path, _lines(path, lines)):
                rank = row.get("rank") if isinstance(row, dict) else None
                samples = row.get("samples") if isinstance(row, dict) else None
                if not isinstance(rank, int) or not isinstance(samples, list) or not samples:
                    raise DataFileError(
                        f"{path}:{line}: no batch of a rank",
                        'write one batch a line: {"rank": 0, "samples": [3, 17]}',
                    )
                if not all(isinstance(it, int) and 0 <= it <= _LARGEST for it in samples):
                    raise DataFileError(f"{path}:{line}: samples are indices into the lengths")
                if not 0 <= rank < world_size:
                    raise DataFileError(
                        f"{path}:{line}: rank {rank} is none of {world_size} ranks",
                        f"say --world-size {rank + 1} or more",
                    )
                batches[rank].append(samples)
    except OSError as error:
        raise DataFileError(f"cannot read {path}: {error.strerror or error}") from None
    return [
        RankBatches(
            np.asarray([sample for batch in of_rank for sample in batch], dtype=np.int64),
            np.asarray([len(batch) for batch in of_rank], dtype=np.int64),
        )
        for of_rank in batches
    ]


def _read_npy(path: Path, field: str | None, modality_field: str | None) -> tuple[Any, None]:
    if field or modality_field:
        raise DataFileError(f"{path} is one array and has no fields", "leave the fields out")
    with open(path, "rb") as stream:
        if stream.read(len(_MAGIC)) == _MAGIC:
            stream.seek(0)
            _check_size(path, stream)
        stream.seek(0)
        return np.load(stream, allow_pickle=False), None


def _check_size(path: Path, stream: BinaryIO) -> None:
    """Stop at an array that is not there: numpy makes room for what the header says."""
    version = np.lib.format.read_magic(stream)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(stream)
    held = os.fstat(stream.fileno()).st_size - stream.tell()
    if math.prod(shape) * dtype.itemsize > held:
        raise DataFileError(f"{path} is cut off: it holds {held} bytes of an array of {shape}")


def _read_jsonl(path: Path, field: str | None, modality_field: str | None) -> tuple[Any, Any]:
    with open(path, encoding="utf-8") as stream:
        rows = _json_rows(path, _lines(path, stream))
        return _of_rows(path, rows, field, modality_field)


def _read_csv(path: Path, field: str | None, modality_field: str | None) -> tuple[Any, Any]:
    with open(path, encoding="utf-8", newline="") as stream:
        first = next(_lines(path, stream), "").strip()
        stream.seek(0)
        lines = _lines(path, stream)
        if first.isdigit() and not field:
            rows: _Rows = (
                (n, _number(row[0])) for n, row in enumerate(csv.reader(lines), 1) if row
            )
        else:
            rows = (
                (n, {name: _number(value) for name, value in row.items()})
                for n, row in enumerate(csv.DictReader(lines), 2)
            )
        return _of_rows(path, rows, field, modality_field)


def _read_arrow(path: Path, field: str | None, modality_field: str | None) -> tuple[Any, Any]:
    try:
        import pyarrow.compute as compute  # type: ignore[import-not-found,unused-ignore]
        import pyarrow.ipc as ipc  # type: ignore[import-not-found,unused-ignore]
        import pyarrow.parquet as parquet  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise DataFileError(f"reading {path} needs pyarrow", "pip install pyarrow") from None
    if path.suffix.lower() == ".parquet":
        names = parquet.read_schema(path).names
        name = _chosen(path, names, field)
        table = parquet.read_table(path, columns=[n for n in (name, modality_field) if n])
    else:  # as Hugging Face datasets keeps its tables
        with open(path, "rb") as stream:
            table = ipc.open_stream(stream).read_all()
        name = _chosen(path, table.column_names, field)
    column = table[name]
    if str(column.type).startswith(("list", "large_list")):
        column = compute.list_value_length(column)
    if column.null_count:
        raise DataFileError(f"{path}: {column.null_count} rows have no {name}")
    if not modality_field:
        return column.to_numpy(), None
    if modality_field not in table.column_names:
        raise DataFileError(
            f"{path} has no column {modality_field}", f"it has {', '.join(table.column_names)}"
        )
    return column.to_numpy(), table[modality_field].to_pylist()


_READERS: dict[str, Callable[[Path, str | None, str | None], tuple[Any, Any]]] = {
    ".npy": _read_npy,
    ".csv": _read_csv,
    ".parquet": _read_arrow,
    ".arrow": _read_arrow,
}


def _check_regular(path: Path) -> None:
    """Stop at pipes and devices, which may never end; what is not there is told when it is opened.

    Raises:
        DataFileError: it is one.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - any text
        raise DataFileError(f"{path} is not a regular file")


def _lines(path: Path, stream: TextIO) -> Iterator[str]:
    """The lines of a file.

    Raises:
        DataFileError: one is so long that it is none.
    """
    number = 0
    while line := stream.readline(_LONGEST_LINE):
        number += 1
        if len(line) == _LONGEST_LINE and not line.endswith("\n"):
            raise DataFileError(f"{path}:{number}: a line of more than {_LONGEST_LINE} characters")
        yield line


def _json_rows(path: Path, lines: Iterable[str]) -> _Rows:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError):
            raise DataFileError(
                f"{path}:{number}: no JSON", "write one number or one object a line"
            ) from None


def _of_rows(
    path: Path, rows: _Rows, field: str | None, modality_field: str | None
) -> tuple[list[int], list[str] | None]:
    lengths: list[int] = []
    modality: list[str] = []
    name = field
    for line, row in rows:
        value = row
        if isinstance(row, dict):
            name = name or _chosen(path, list(row), None)
            value = row.get(name)
        if isinstance(value, list):
            value = len(value)
        if isinstance(value, bool) or not isinstance(value, int):
            what = f"{name} is" if name else "the line is"
            raise DataFileError(
                f"{path}:{line}: {what} {json.dumps(value)[:40]}, not a number of tokens",
                "name the field that holds it with --field",
            )
        lengths.append(value)
        if modality_field:
            label = row.get(modality_field) if isinstance(row, dict) else None
            if label is None:
                raise DataFileError(f"{path}:{line}: there is no {modality_field}")
            modality.append(str(label))
    if not lengths:
        raise DataFileError(f"{path} holds no lengths", "write one number a line")
    return lengths, modality if modality_field else None


def _chosen(path: Path, names: Sequence[str], field: str | None) -> str:
    found = next((name for name in FIELDS if name in names), None) if field is None else field
    if found is None or found not in names:
        wanted = field or "length"
        raise DataFileError(
            f"{path} has no field {wanted}; it has {', '.join(map(str, names))[:200]}",
            "name the field that holds the lengths with --field",
        )
    return found


def _number(text: Any) -> Any:
    if not isinstance(text, str) or not text.strip().isdecimal():
        return text
    try:
        return int(text)
    except ValueError:  # more digits than Python converts
        return text
