"""What dsguard is shown and cannot judge: it says so, and says nothing untrue of it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import Dsguard

YAML = """\
train_micro_batch_size_per_gpu: 4
gradient_accumulation_steps: 2
zero_optimization:
  stage: 2
"""
LOADS = """
import yaml, deepspeed
with open("ds.yaml") as file:
    config = yaml.safe_load(file)
engine, *_ = deepspeed.initialize(model=model, config=config)
"""
MAKES = """
import argparse, deepspeed
from made_elsewhere import config_for
parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
parser.add_argument("--zero_stage", type=int, default=0)
args = parser.parse_args()
config = config_for(args.zero_stage)
engine, *_ = deepspeed.initialize(args=args, model=model, config=config)
"""
TEMPLATE = """\
{
  "train_micro_batch_size_per_gpu": MICRO_BATCH,
  "gradient_accumulation_steps": __GRAD_ACC__,
  "gradient_clipping": CLIP,
  "steps_per_print": 10
}
"""

with_yaml = pytest.mark.skipif(
    find_spec("ruamel") is None or find_spec("ruamel.yaml") is None,
    reason="YAML is read by ruamel.yaml",
)


@with_yaml
@pytest.mark.parametrize("rest", ["", " -- torchrun --nproc_per_node 2 train.py"])
def test_yaml_for_a_script_is_not_judged_as_hjson(
    rest: str, tmp_path: Path, dsguard: Dsguard
) -> None:
    (tmp_path / "ds.yaml").write_text(YAML, encoding="utf-8")
    (tmp_path / "train.py").write_text(LOADS, encoding="utf-8")
    outcome = dsguard(f"check ds.yaml{rest}", tmp_path)
    assert outcome.code == 3
    assert "ds.yaml: cannot be judged: it is YAML" in outcome.out
    assert "DSG" not in outcome.out


@with_yaml
def test_yaml_that_deepspeed_is_given_fails(tmp_path: Path, dsguard: Dsguard) -> None:
    (tmp_path / "ds.yaml").write_text(YAML, encoding="utf-8")
    outcome = dsguard("check -- deepspeed train.py --deepspeed_config ds.yaml", tmp_path)
    assert outcome.code == 1
    assert 'zero_optimization is "stage: 2"' in outcome.out


@with_yaml
def test_yaml_that_both_read_alike_is_judged(tmp_path: Path, dsguard: Dsguard) -> None:
    wrong = "train_batch_size: 65\ntrain_micro_batch_size_per_gpu: 4\n"
    (tmp_path / "ds.yaml").write_text(wrong, encoding="utf-8")
    outcome = dsguard("check ds.yaml --world-size 2 -o concise", tmp_path)
    assert (outcome.code, "DSG2" in outcome.out) == (1, True)


@pytest.mark.deepspeed
def test_deepspeed_makes_something_else_of_it(tmp_path: Path) -> None:
    hjson = pytest.importorskip("hjson")
    assert hjson.loads(YAML)["zero_optimization"] == "stage: 2"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Dockerfile", 'FROM pytorch/pytorch\nRUN pip install deepspeed\nCMD ["deepspeed"]\n'),
        ("justfile", "train:\n    deepspeed train.py --deepspeed_config ds.json\n"),
    ],
)
def test_files_of_other_tools(name: str, text: str, tmp_path: Path, dsguard: Dsguard) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    outcome = dsguard(f"check {name}", tmp_path)
    assert outcome.code == 3
    assert f"{name}: is no launch script or config that dsguard knows" in outcome.out


@pytest.mark.parametrize("text", ['{"train_batch_size": 4', YAML.replace("2", "two")])
def test_a_config_without_a_suffix_is_judged(text: str, tmp_path: Path, dsguard: Dsguard) -> None:
    (tmp_path / "ds_config").write_text(text, encoding="utf-8")
    outcome = dsguard("check ds_config", tmp_path)
    assert "is no launch script" not in outcome.out


@pytest.mark.parametrize(
    "line", ["check run.sh", "check -- deepspeed main.py --zero_stage 3 --deepspeed"]
)
def test_a_config_made_in_code_is_no_file_to_name(
    line: str, tmp_path: Path, dsguard: Dsguard
) -> None:
    (tmp_path / "main.py").write_text(MAKES, encoding="utf-8")
    (tmp_path / "run.sh").write_text("deepspeed main.py --zero_stage 3 --deepspeed\n")
    outcome = dsguard(line, tmp_path)
    assert outcome.code == dsguard("check main.py", tmp_path).code == 0
    assert "names no DeepSpeed config" not in outcome.out


def test_words_of_a_template_are_not_told_to_be_quoted(tmp_path: Path, dsguard: Dsguard) -> None:
    (tmp_path / "ds.json").write_text(TEMPLATE, encoding="utf-8")
    outcome = dsguard("check ds.json -o concise", tmp_path)
    assert [line for line in outcome.out.splitlines() if "DSG005" in line] == []
    assert "this and 2 more are not judged" in outcome.out
