"""Pins of a project, and the release that a config is judged by where none is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsguard.facts import target as targets
from dsguard.facts.target import release_beside, resolve_target
from dsguard.frontends.pinned import pinned
from dsguard.model.report import Target, TargetOrigin
from tests.conftest import Dsguard

UV = """version = 1

[[package]]
name = "deepspeed"
version = "0.16.4"
source = { registry = "https://example.org/simple" }

[[package]]
name = "torch"
version = "2.6.0+cu124"
"""
PYLOCK = '[[packages]]\nname = "deepspeed"\nversion = "0.17.1"\n'
PROJECT = """[project]
name = "x"
dependencies = ["torch>=2", "DeepSpeed[autotuning]==0.15.4; sys_platform == 'linux'"]
"""
GROUP = '[dependency-groups]\ntrain = [{include-group = "x"}, "deepspeed == 0.14.2"]\n'


@pytest.mark.parametrize(
    ("name", "text", "release"),
    [
        ("uv.lock", UV, "0.16.4"),
        ("pylock.toml", PYLOCK, "0.17.1"),
        ("requirements.txt", "-r base.txt\ndeepspeed == 0.15.4  # tested\n", "0.15.4"),
        ("requirements-train.txt", "deepspeed==0.15.4 --hash=sha256:00\n", "0.15.4"),
        ("requirements/gpu.txt", "deepspeed==0.15.4 \\\n    --hash=sha256:00\n", "0.15.4"),
        ("pyproject.toml", PROJECT, "0.15.4"),
        ("pyproject.toml", GROUP, "0.14.2"),
        ("requirements.txt", "deepspeed>=0.15.4\n", None),
        ("requirements.txt", "deepspeed==0.15.*\n", None),
        ("requirements.txt", "deepspeed==0.15.4\ndeepspeed==0.15.3\n", None),
        ("requirements.txt", "deepspeed-mii==0.3.0\n", None),
        ("uv.lock", UV + '[[package]]\nname = "deepspeed"\nversion = "0.18.0"\n', None),
        ("uv.lock", "deepspeed = [", None),
        ("pyproject.toml", 'project = "deepspeed==0.15.4"', None),
    ],
)
def test_a_pin(name: str, text: str, release: str | None, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    pin = pinned("deepspeed", tmp_path)
    assert (str(pin.version) if pin else None) == release
    if pin is not None:
        assert pin.file == path


def test_the_local_part_is_no_release(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV, encoding="utf-8")
    pin = pinned("torch", tmp_path)
    assert pin is not None
    assert str(pin.version) == "2.6.0"


def test_the_nearest_folder_counts_up_to_the_repository(tmp_path: Path) -> None:
    project = tmp_path / "project"
    inner = project / "recipes" / "small"
    inner.mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("deepspeed==0.12.6\n", encoding="utf-8")
    (project / "requirements.txt").write_text("deepspeed==0.15.4\n", encoding="utf-8")
    assert str(pinned("deepspeed", inner).version) == "0.15.4"  # type: ignore[union-attr]
    (project / "requirements.txt").unlink()
    (project / ".git").mkdir()
    assert pinned("deepspeed", inner) is None


def test_a_lock_file_counts_before_requirements(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("deepspeed==0.12.6\n", encoding="utf-8")
    (tmp_path / "uv.lock").write_text(UV, encoding="utf-8")
    assert str(pinned("deepspeed", tmp_path).version) == "0.16.4"  # type: ignore[union-attr]


def test_binary_and_missing_files_say_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_bytes(b"\xff\xfedeepspeed==0.12.6")
    (tmp_path / "uv.lock").mkdir()
    assert pinned("deepspeed", tmp_path) is None


class TestTarget:
    @pytest.fixture(autouse=True)
    def _nothing_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(targets, "installed", lambda package: None)

    def test_the_pin_counts_where_none_is_installed(self, tmp_path: Path) -> None:
        (tmp_path / "uv.lock").write_text(UV, encoding="utf-8")
        assert resolve_target(None, tmp_path) == Target("0.16.4", TargetOrigin.PINNED, "uv.lock")

    def test_an_option_counts_before_it(self, tmp_path: Path) -> None:
        (tmp_path / "uv.lock").write_text(UV, encoding="utf-8")
        assert resolve_target("0.18.3", tmp_path).origin is TargetOrigin.OPTION

    def test_a_pin_that_is_too_old_does_not_count(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / "requirements.txt").write_text("deepspeed==0.8.3\n", encoding="utf-8")
        assert resolve_target(None, tmp_path).origin is TargetOrigin.NEWEST_KNOWN

    def test_the_report_names_the_file(self, tmp_path: Path, dsguard: Dsguard) -> None:
        (tmp_path / "requirements.txt").write_text("deepspeed==0.15.4\n", encoding="utf-8")
        (tmp_path / "ds.json").write_text(
            '{"train_batch_size": 4, "bf16": {"enabled": true}}', encoding="utf-8"
        )
        outcome = dsguard("check ds.json", tmp_path)
        assert "judged by DeepSpeed 0.15.4 (pinned in requirements.txt)" in outcome.out
        assert "requirements.txt" in dsguard("facts ds.json", tmp_path).out


def test_what_is_installed_belongs_to_the_installed_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from packaging.version import Version

    monkeypatch.setattr(targets, "installed", lambda package: Version("4.40.0"))
    (tmp_path / "requirements.txt").write_text("transformers==4.47.1\n", encoding="utf-8")
    here = Target("0.16.4", TargetOrigin.INSTALLED)
    asked = Target("0.16.4", TargetOrigin.OPTION)
    assert str(release_beside("transformers", here, tmp_path)) == "4.40.0"
    assert str(release_beside("transformers", asked, tmp_path)) == "4.47.1"
