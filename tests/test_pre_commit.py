"""The hooks, as pre-commit runs them on a repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import PATH, ROOT, Dsguard

HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in YAML(typ="safe").load(ROOT / ".pre-commit-hooks.yaml")
}


def picked_up(name: str) -> bool:
    """Whether pre-commit would pass a file to the hook: it searches, from the top of the repo."""
    return re.search(HOOKS["dsguard"]["files"], name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "ds.json",
        "ds_config.json",
        "ds-config.json",
        "dsconfig.json",
        "DS_CONFIG.JSON",
        "ds_config_zero3.json",
        "configs/ds_z3_offload_config.json",
        "configs/deepspeed/zero2.json",
        "deepspeed.json",
        "deepspeed_config.hjson",
        "deepspeedConfig.json",
        "llama_deepspeed.json",
        "llama-7b.ds.json",
        "zero3_bf16.json",
        "zero_1.json",
        "bf16_zero-2_offload.json",
        "stage3.json",
        "recipes/stage_2_fp16.json",
    ],
)
def test_names_of_configs(name: str) -> None:
    assert picked_up(name)


@pytest.mark.parametrize(
    "name",
    [
        "package.json",
        "tsconfig.json",
        "config.json",
        "ads.json",
        "dstore.json",
        "models/records.json",
        "ds_config.py",
        "ds_config.json.bak",
        "deepspeed/README.md",
        "deepspeed/package.json",
        "ds/index.json",
        "zero.json",
        "zero10.json",
        "subzero3.json",
        "backstage3.json",
    ],
)
def test_names_of_other_files(name: str) -> None:
    assert not picked_up(name)


GOOD = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}}
BAD = {"train_micro_batch_size_per_gpu": 0}

real_pre_commit = pytest.mark.skipif(
    find_spec("pre_commit") is None, reason="pre-commit is not installed"
)


class Repository:
    """A git repository with a pre-commit configuration."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self._environ = {name: it for name, it in os.environ.items() if not name.startswith("GIT_")}
        self._environ |= {
            "PATH": PATH,
            "PRE_COMMIT_HOME": str(cache),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }
        self.run("git", "init", "--quiet")

    def run(self, *command: str) -> tuple[int, str]:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        return done.returncode, done.stdout

    def write(self, name: str, content: Any) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def pre_commit(self, *arguments: str) -> tuple[int, str]:
        self.run("git", "add", ".")
        return self.run(sys.executable, "-m", "pre_commit", *arguments, "--color", "never")

    def use(self, *ids: str) -> None:
        """Use the published hooks with the dsguard of this environment: nothing is installed."""
        hooks = [{**HOOKS[id], "language": "system"} for id in ids]
        for hook in hooks:
            hook.pop("additional_dependencies", None)
        config = {"repos": [{"repo": "local", "hooks": hooks}]}
        self.write(".pre-commit-config.yaml", config)  # JSON is YAML


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder = tmp_path / "repository"
    folder.mkdir()
    return Repository(folder, tmp_path / "cache")


@real_pre_commit
def test_a_bad_config_stops_the_commit(repository: Repository) -> None:
    repository.use("dsguard")
    repository.write("conf/ds_config.json", BAD)
    repository.write("conf/ds_good.json", GOOD)
    code, out = repository.pre_commit("run", "--all-files")
    assert code == 1
    assert "dsguard (DeepSpeed config)" in out
    assert "--> conf/ds_config.json:1:36" in out
    assert "ds_good.json" not in out
    repository.write("conf/ds_config.json", GOOD)
    code, out = repository.pre_commit("run", "--all-files")
    assert code == 0, out
    assert "Passed" in out


@real_pre_commit
def test_a_repository_without_deepspeed_is_left_alone(repository: Repository) -> None:
    repository.use("dsguard")
    for number in range(1000):
        repository.write(f"data/{number % 10}/record_{number}.json", {"id": number, "stage": 3})
    code, out = repository.pre_commit("run", "--all-files")
    assert code == 0
    assert "(no files to check)" in out


@real_pre_commit
def test_files_that_are_only_named_like_configs_stop_nothing(repository: Repository) -> None:
    repository.use("dsguard")
    repository.write("results/deepspeed_results.json", {"loss": [1.5, 1.2], "gpu": "H100"})
    code, out = repository.pre_commit("run", "--all-files")
    assert code == 0, out


@real_pre_commit
def test_a_bad_training_script_stops_the_commit(repository: Repository) -> None:
    repository.use("dsguard-scripts")
    start = "import deepspeed\nengine, *_ = deepspeed.initialize(model=model, config="
    repository.write("deep/train.py", f"{start}{BAD})\n")
    repository.write("setup.py", "print(1)\n")
    code, out = repository.pre_commit("run", "--files", "setup.py")
    assert code == 1
    assert "--> deep/train.py:2:" in out
    assert "Skipped" in repository.pre_commit("run", "--files", "README.md")[1]


@real_pre_commit
def test_the_hook_for_jobs_gets_no_files(repository: Repository) -> None:
    """What it checks stands in the settings; it runs whatever was changed."""
    repository.use("dsguard-jobs")
    repository.write("README.md", "nothing")
    hook = HOOKS["dsguard-jobs"]
    assert (hook["entry"], hook["pass_filenames"], hook["always_run"]) == (
        "dsguard check",
        False,
        True,
    )
    code, out = repository.pre_commit("run", "--verbose", "--files", "README.md")
    assert "dsguard (jobs)" in out
    assert code == 1
    assert "exit code: 2" in out  # nothing to check is wrong usage


def test_a_folder_of_unrelated_json_is_searched_in_silence(
    dsguard: Dsguard, tmp_path: Path
) -> None:
    for number in range(1000):
        (tmp_path / f"record_{number}.json").write_text(json.dumps({"id": number, "stage": 3}))
    (tmp_path / "training.json").write_text(json.dumps(GOOD))
    outcome = dsguard("check . --target 0.19.8", tmp_path)
    assert (outcome.code, outcome.out.splitlines()) == (
        0,
        ["No problems found in 1 file; judged by DeepSpeed 0.19.8 (as --target says)"],
    )
