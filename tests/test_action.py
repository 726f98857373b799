"""The GitHub Action: what its steps would run, run here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import PATH, ROOT
from tests.sarif import read_sarif

ACTION: dict[str, Any] = YAML(typ="safe").load(ROOT / "action.yml")
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the action needs bash")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 2}')
    (tmp_path / "a b.json").write_text('{"train_micro_batch_size_per_gpu": 0}')
    (tmp_path / "train.py").write_text("")
    return tmp_path


def check(folder: Path, **inputs: str) -> tuple[int, str]:
    """Run the step as a runner does, with the inputs in its environment."""
    step = STEPS["Check"]
    given = {name: str(it.get("default", "")) for name, it in ACTION["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    environ = dict(os.environ) | {"PATH": PATH}
    for name, expression in step["env"].items():
        environ[name] = given[expression.removeprefix("${{ inputs.").removesuffix(" }}")]
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env=environ,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_folder_is_searched_by_default(folder: Path) -> None:
    code, out = check(folder)
    assert code == 1
    assert out.startswith("::error file=a b.json,line=1,endLine=1,col=36,endColumn=37,title=DSG104")


def test_paths_and_options(folder: Path) -> None:
    assert check(folder, paths="good\n") == (0, "")
    code, _ = check(folder, paths="a b.json\ngood/ds.json\n", args="--fail-on never --strict-typo")
    assert code == 2
    code, out = check(folder, paths="a b.json\n\n", args="--fail-on never --target 0.19.8")
    assert (code, out.count("::error")) == (0, 1)


def test_options_on_several_lines(folder: Path) -> None:
    args = "--fail-on never\n\n  --target\n0.19.8\n"
    code, out = check(folder, paths="a b.json", args=args)
    assert (code, out.count("::error")) == (0, 1)
    code, out = check(folder, paths="a b.json", args="--fail-on never\n--strict-typo")
    assert (code, "--strict-typo" in out) == (2, True)


def test_a_launch(folder: Path) -> None:
    launch = "deepspeed --num_gpus 2 train.py --batch_size 1 --deepspeed_config good/ds.json"
    code, out = check(folder, paths="", launch=launch)
    assert code == 1
    assert "loader-batch-differs" in out


def test_sarif(folder: Path) -> None:
    assert check(folder, sarif_file="out.sarif")[0] == 1
    assert read_sarif((folder / "out.sarif").read_text())["results"]


def test_inputs_are_no_shell(folder: Path) -> None:
    """Inputs may come from a pull request: they reach the shell as variables only."""
    check(folder, paths="$(touch pwned)", args="; touch pwned", launch="`touch pwned`")
    assert not (folder / "pwned").exists()
    for step in STEPS.values():
        assert "${{" not in step.get("run", "")


def test_every_input_is_used() -> None:
    used = str(ACTION["runs"])
    for name, given in ACTION["inputs"].items():
        assert f"inputs.{name}" in used
        assert given["description"]
