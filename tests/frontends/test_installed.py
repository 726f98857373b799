"""The release of an installed package, as importlib.metadata tells it."""

from __future__ import annotations

import re
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from dsguard.frontends.installed import installed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with packages."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that importlib.metadata is asked about."""
    names: list[str] = []
    real = metadata.version

    def version(package: str) -> str:
        names.append(package)
        return real(package)

    monkeypatch.setattr(metadata, "version", version)
    return names


def test_every_installed_package_has_its_release(asked: list[str]) -> None:
    distributions = {d.metadata["Name"] for d in metadata.distributions() if d.metadata["Name"]}
    assert len(distributions) > 5
    for name in distributions:
        found = installed(re.sub(r"[-_.]+", "-", name).lower())
        assert str(found) == metadata.version(name).partition("+")[0], name
    assert installed("no-such-package") is None


def install(folder: Path, name: str, version: str, head: str = "Metadata-Version: 2.1\n") -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    text = f"{head}Name: {name}\nVersion: {version}\n\nVersion: 9\n"
    (info / "METADATA").write_text(text, encoding="utf-8")


def test_the_common_case_is_read_without_importing_much(folder: Path, asked: list[str]) -> None:
    install(folder, "deepspeed", "0.18.3+cu124")
    install(folder, "deepspeed_kernels", "0.1")
    assert str(installed("deepspeed")) == "0.18.3"
    assert str(installed("deepspeed-kernels")) == "0.1"
    assert installed("accelerate") is None
    assert asked == []


def test_the_first_folder_counts_as_for_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in (("one", "0.16.4"), ("two", "0.18.3")):
        install(tmp_path / name, "DeepSpeed", version)
    monkeypatch.setattr(sys, "path", [str(tmp_path / n) for n in ("none", "one", "two")])
    assert str(installed("deepspeed")) == metadata.version("deepspeed") == "0.16.4"


@pytest.mark.parametrize("kind", ["egg-info folder", "egg-info file", "archive", "egg"])
def test_what_is_rare_is_left_to_importlib(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    head = "Metadata-Version: 1.2\nName: deepspeed\nVersion: 0.15.4\n"
    if kind == "egg-info folder":
        (folder / "deepspeed.egg-info").mkdir()
        (folder / "deepspeed.egg-info" / "PKG-INFO").write_text(head)
    elif kind == "egg-info file":
        (folder / "deepspeed-0.15.4.egg-info").write_text(head)
    elif kind == "archive":
        with zipfile.ZipFile(folder / "packages.zip", "w") as archive:
            archive.writestr("deepspeed-0.15.4.dist-info/METADATA", head)
        monkeypatch.setattr(sys, "path", [str(folder / "packages.zip")])
    else:
        egg = folder / "deepspeed-0.15.4-py3.egg"
        (egg / "EGG-INFO").mkdir(parents=True)
        (egg / "EGG-INFO" / "PKG-INFO").write_text(head)
        monkeypatch.setattr(sys, "path", [str(egg)])
    assert str(installed("deepspeed")) == "0.15.4"
    assert asked == ["deepspeed"]


def test_another_finder_of_distributions_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    class Finder:
        def find_spec(self, *_: object) -> None:
            """It finds no modules."""

        def find_distributions(self, *_: object) -> list[metadata.Distribution]:
            return []

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    install(folder, "deepspeed", "0.18.3")
    assert str(installed("deepspeed")) == "0.18.3"
    assert asked == ["deepspeed"]


def test_a_release_that_is_none(folder: Path) -> None:
    install(folder, "deepspeed", "main")
    assert installed("deepspeed") is None
    assert installed("torch") is None
