"""The fuzz targets in short: seeded inputs, the same every time, and every fault that was found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.effects import EffectError, only_reading
from tests.fuzz.inputs import inputs
from tests.fuzz.targets import TARGETS, FuzzTarget

pytest.importorskip("ruamel.yaml", reason="the yaml extra is not installed")

FOUND = sorted((Path(__file__).parent / "found").glob("*/*"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(autouse=True)
def _at_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_inputs_that_are_nearly_right(target: FuzzTarget, folder: Path) -> None:
    target.prepare(folder)

    @settings(
        max_examples=25,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(inputs(target.seeds, target.words))
    def take(data: bytes) -> None:
        target(data, folder)

    take()


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_once(path: Path, folder: Path) -> None:
    target = TARGETS[path.parent.name]
    target.prepare(folder)
    target(path.read_bytes(), folder)


@pytest.mark.parametrize(
    "act",
    [
        lambda folder: (folder / "new").write_text(""),
        lambda folder: (folder.parent / "outside").read_bytes(),
        lambda folder: exec(compile("1", "train.py", "exec")),
        lambda folder: __import__("os").system("true"),
        lambda folder: __import__("subprocess").run(["true"], check=False),
        lambda folder: (folder / "there").unlink(),
    ],
)
def test_the_watch_sees_what_must_not_happen(act: object, folder: Path) -> None:
    (folder / "there").write_text("")
    (folder.parent / "outside").write_text("")
    assert callable(act)
    with pytest.raises(EffectError), only_reading(folder):
        act(folder)
    with only_reading(folder):
        (folder / "there").read_bytes()
    assert not (folder / "new").exists()


def test_the_watch_lets_what_is_named_be_read(folder: Path) -> None:
    outside = folder.parent / "named.sh"
    outside.write_text("")
    beside = folder.parent / "beside.py"
    beside.write_text("")
    with only_reading(folder, naming=b"deepspeed ../na'me'd.sh"):
        outside.read_bytes()
        beside.read_bytes()
    for act in (
        lambda: (folder.parent.parent / "unnamed.sh").read_bytes(),
        lambda: outside.write_text(""),
        lambda: Path(os.devnull).read_bytes(),
    ):
        with pytest.raises(EffectError), only_reading(folder, naming=b"../named.sh /dev/null"):
            act()
