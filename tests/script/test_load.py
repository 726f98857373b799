"""Scripts from disk."""

from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path

import pytest

from dsguard.script.load import MAX_BYTES, load_script, modules_below
from tests.script.reading import value

RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
PARSER = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--x', default='{}')\n"


def test_no_file_is_no_script(tmp_path: Path) -> None:
    assert load_script(tmp_path / "missing.py", "missing.py") is None
    assert load_script(tmp_path, ".") is None
    assert load_script(tmp_path / "nul\0.py", "nul") is None
    file = tmp_path / "train.py"
    file.write_text("")
    assert load_script(file / "below.py", "below.py") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.py")
    assert load_script(tmp_path / "train.py", "train.py") is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"#" * (MAX_BYTES + 1), "it is larger than 1 MiB"),
        (b"x = '\xff'", "its encoding is not known"),
        (b"# coding: latin-9000\n", "its encoding is not known"),
        (b"# coding: rot13\n", "its encoding is not known"),
        (b"# coding: punycode\n", "its encoding punycode is not read"),
        (b"# coding: ascii\nx = '\xe4'", "it is not the ascii text"),
        (b"x = 1\0", "it is no Python"),
        (b"def (", f"it is no Python {RUNNING}: invalid syntax in line 1"),
    ],
)
def test_unreadable_files_say_why(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(data)
    script = load_script(path, "train.py")
    assert script is not None
    assert script.unreadable is not None
    assert script.unreadable.startswith(reason)
    assert script.arguments == ()


@pytest.mark.parametrize(
    "data",
    [
        codecs.BOM_UTF8 + PARSER.format("ä").encode(),
        b"# -*- coding: latin-1 -*-\n" + PARSER.format("ä").encode("latin-1"),
        b"#!/usr/bin/env python\n# coding: gbk\n" + PARSER.format("ä").encode("gbk", "ignore"),
    ],
)
def test_encodings(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(data)
    script = load_script(path, "train.py")
    assert script is not None
    assert value(script, "x") in ("ä", "")


def test_modules_come_from_below_the_folder_only(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "__init__.py").write_text("A = 1")
    (folder / "mod.py").write_text("B = 1")
    (tmp_path / "outside.py").write_text("C = 1")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    (folder / "loop.py").symlink_to(folder / "loop.py")
    (folder / "large.py").write_bytes(b"#" * (MAX_BYTES + 1))
    find = modules_below(folder / "train.py", "some/run/train.py")
    found = find("mod")
    assert found is not None
    assert (found.name, found.text) == (str(Path("some/run/mod.py")), "B = 1")
    package = find("pkg")
    assert package is not None
    assert package.text == "A = 1"
    for name in ("link", "loop", "large", "missing", "pkg.missing", "..outside", "", "a/b", "x\0"):
        assert find(name) is None, name


def test_nothing_is_run(tmp_path: Path) -> None:
    """Every place where a careless reader would execute something creates a file."""
    trap = f"open({str(tmp_path / 'ran')!r}, 'w').write('x')"
    (tmp_path / "beside.py").write_text(f"{trap}\nVALUE = 3\n")
    (tmp_path / "train.py").write_text(
        f"""
import argparse
import beside
from dataclasses import dataclass
from transformers import HfArgumentParser
{trap}
class Meta(type):
    def __new__(cls, *args):
        {trap}
        return super().__new__(cls, *args)
@dataclass
class A(metaclass=Meta):
    y: int = [{trap}][0]
    z: "{trap}" = 1
parser = argparse.ArgumentParser()
parser.add_argument("--x", default=beside.VALUE)
parser.add_argument("--w", type=lambda t: {trap}, default="1")
parser.add_argument("--v", default=eval({trap!r}))
parser.add_argument("--u", default=__import__("beside").VALUE)
HfArgumentParser(A)
parser.parse_args()
"""
    )
    script = load_script(tmp_path / "train.py", "train.py")
    assert script is not None
    assert value(script, "x") == 3
    assert not (tmp_path / "ran").exists()
