"""From bytes and paths to a document, and every way in which that fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsguard.reading import HjsonSyntaxError, ReadError, load_bytes, load_path, parse
from dsguard.reading.load import MAX_BYTES


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "ds_config.json"
    path.write_bytes('{"é": 1}\r\n'.encode())
    return path


def refusal(path: Path, name: str | None = None) -> ReadError:
    with pytest.raises(ReadError) as caught:
        load_path(path, name)
    return caught.value


def test_a_file_is_read_with_its_line_ends(config: Path) -> None:
    document = parse(load_path(config))
    assert document.value == {"é": 1}
    assert document.source.text.endswith("\r\n")
    assert document.source.name == str(config)
    assert document.source.is_file


def test_the_name_shown_can_be_another(config: Path) -> None:
    assert load_path(config, "short.json").name == "short.json"
    assert refusal(config.parent, "short").subject == "short"


def test_bytes_are_no_file() -> None:
    source = load_bytes(b"\xef\xbb\xbf{}", "<stdin>")
    assert not source.is_file
    assert source.text == "\ufeff{}"


def test_a_link_is_followed(config: Path) -> None:
    link = config.with_name("link.json")
    link.symlink_to(config)
    assert parse(load_path(link)).value == {"é": 1}


def test_a_missing_file_with_a_neighbour_of_a_like_name(config: Path) -> None:
    error = refusal(config.with_name("ds_confg.json"))
    assert error.message == "does not exist"
    assert error.help == f"did you mean {config}?"


def test_an_ending_in_common_makes_no_two_names_alike(config: Path) -> None:
    config.with_name("zero.json").touch()
    assert refusal(config.with_name("gone.json")).help == ""


def test_a_missing_file_without_a_like_neighbour(config: Path) -> None:
    assert refusal(config.with_name("zzz")).help == ""


def test_a_folder_of_a_like_name_is_not_proposed(tmp_path: Path) -> None:
    (tmp_path / "ds_config").mkdir()
    assert refusal(tmp_path / "ds_confg").help == ""


def test_a_missing_folder(tmp_path: Path) -> None:
    assert "folder" in refusal(tmp_path / "no" / "x.json").help


def test_a_file_taken_for_a_folder(config: Path) -> None:
    assert refusal(config / "x.json").message == "cannot be read: Not a directory"


def test_a_link_to_itself(tmp_path: Path) -> None:
    link = tmp_path / "loop"
    link.symlink_to(link)
    assert "cannot be read" in refusal(link).message


def test_a_directory(tmp_path: Path) -> None:
    assert refusal(tmp_path).message == "is a directory"


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    """Opening it would wait for a writer for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refusal(pipe).message == "is not a regular file"


def test_a_device() -> None:
    assert refusal(Path(os.devnull)).message == "is not a regular file"


def test_no_permission(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root may read everything
    assert "may not be read" in refusal(config).message


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5000])
def test_an_impossible_path(name: str) -> None:
    assert refusal(Path(name)).message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{\n"a": "caf\xe9"}', "is not UTF-8: byte 0xe9 at offset 11 (line 2)"),
        (b"{}\xf0\x9f", "is not UTF-8: byte 0xf0 at offset 2 (line 1)"),
        (b'"\xed\xa0\x80"', "is not UTF-8: byte 0xed at offset 1 (line 1)"),
        ("{}".encode("utf-16"), "is UTF-16 text"),
        (b"\xfe\xff\0{\0}", "is UTF-16 text"),
        ("{}".encode("utf-32"), "is UTF-32 text"),
        ("{}".encode("utf-16-le"), "holds a NUL byte at offset 1 (line 1)"),
        (b"{\n\0}", "holds a NUL byte at offset 2 (line 2)"),
        (b" " * (MAX_BYTES + 1), "is larger than 16 MiB"),
    ],
    ids=range(9),
)
def test_bytes_that_are_no_text(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(ReadError) as caught:
        parse(load_bytes(data, "<stdin>"))
    assert words in caught.value.message
    assert refusal(path).message == caught.value.message


def test_a_text_that_is_no_hjson(config: Path) -> None:
    config.write_text('{"a": [1,', encoding="utf-8")
    with pytest.raises(HjsonSyntaxError) as caught:
        parse(load_path(config))
    assert caught.value.location.source.name == str(config)
    assert str(caught.value) == f"{config}:1:7: `[` is never closed"


def test_an_empty_file(config: Path) -> None:
    config.write_bytes(b"")
    assert parse(load_path(config)).value == {}
