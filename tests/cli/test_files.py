"""Launch scripts and job files on the command line: what is checked, and what is said of it."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.conftest import ROOT, Dsguard, Outcome

PLAIN = '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}\n'
WRONG = '{"train_batch_size": 65, "train_micro_batch_size_per_gpu": 4}\n'
AUTO = """\
{
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": "auto",
  "bf16": {"enabled": "auto"},
  "zero_optimization": {"stage": 2}
}
"""
MAKEFILE = """\
GPUS = 4
train:
\tdeepspeed --num_gpus $(GPUS) train.py --deepspeed_config ds.json
"""
RUN = "#!/bin/bash\ndeepspeed --num_gpus 4 train.py --deepspeed_config ds.json\n"
JOB = """\
model_name_or_path: some/model
stage: sft
finetuning_type: full
deepspeed: ds.json
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
max_grad_norm: 0.5
learning_rate: 1.0e-5
bf16: true
"""
ACCELERATE = """\
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 2
  gradient_accumulation_steps: 4
  gradient_clipping: 1.0
mixed_precision: bf16
num_processes: 8
"""

yaml = pytest.mark.skipif(
    find_spec("ruamel") is None or find_spec("ruamel.yaml") is None,
    reason="the yaml extra is not installed",
)

SCHEMA = json.loads((ROOT / "docs" / "report-v1.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, {"train.py": "", "ds.json": PLAIN})
    return tmp_path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def report_of(outcome: Outcome) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(outcome.out)
    Draft202012Validator(SCHEMA).validate(report)
    return report


def checks_of(outcome: Outcome) -> list[tuple[str | None, Any]]:
    """The config and the world size of every check."""
    return [
        (check["config"], check["facts"]["world_size"].get("value"))
        for check in report_of(outcome)["checks"]
    ]


# Scripts.


def test_a_script_without_problems(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"run.sh": RUN})
    outcome = dsguard("check run.sh", folder)
    assert outcome.code == 0
    assert outcome.out.startswith("No problems found in 1 file; ")


def test_every_launch_of_a_script_is_a_check(dsguard: Dsguard, folder: Path) -> None:
    second = "torchrun --nproc_per_node 2 finetune.py --deepspeed_config wrong.json\n"
    write(folder, {"run.sh": RUN + second, "wrong.json": WRONG})
    outcome = dsguard("check run.sh -o json", folder)
    assert checks_of(outcome) == [("ds.json", 4), ("wrong.json", 2)]
    text = dsguard("check run.sh", folder).out
    assert "== wrong.json, launched by: torchrun --nproc_per_node 2 finetune.py" in text
    assert "== ds.json" not in text


@pytest.mark.parametrize("name", ["job.sbatch", "job.slurm", "run.bash", "launch"])
def test_scripts_go_by_their_name_or_first_line(dsguard: Dsguard, folder: Path, name: str) -> None:
    write(folder, {name: RUN})
    assert checks_of(dsguard(f"check {name} -o json", folder)) == [("ds.json", 4)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Makefile", MAKEFILE),
        ("README.md", f"# How\n\n```bash\n{RUN}```\n\nand `deepspeed other.py`\n"),
    ],
)  # fmt: skip
def test_makefiles_and_markdown(dsguard: Dsguard, folder: Path, name: str, text: str) -> None:
    write(folder, {name: text})
    assert checks_of(dsguard(f"check {name} -o json", folder)) == [("ds.json", 4)]


def test_slurm_says_how_many_tasks_there_are(dsguard: Dsguard, folder: Path) -> None:
    head = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
    command = "srun python train.py --deepspeed_config ds.json\n"
    write(folder, {"job.sbatch": head + command})
    (check,) = report_of(dsguard("check job.sbatch -o json", folder))["checks"]
    assert check["facts"]["launcher"]["value"] == "srun"
    assert "srun starts 8 tasks" in check["facts"]["world_size"]["reason"]


def test_variables_and_continued_lines(dsguard: Dsguard, folder: Path) -> None:
    command = "deepspeed --num_gpus $NUM \\\n  train.py --deepspeed_config $CONFIG\n"
    write(folder, {"run.sh": "NUM=8\nCONFIG=ds.json\n" + command})
    assert checks_of(dsguard("check run.sh -o json", folder)) == [("ds.json", 8)]


def test_a_finding_stands_at_its_place_in_the_script(dsguard: Dsguard, folder: Path) -> None:
    command = "  deepspeed --num_gpus 4 train.py \\\n    --deepspeed_config gone.json\n"
    write(folder, {"run.sh": "#!/bin/bash\n# train\nexport X=1\n" + command})
    outcome = dsguard("check run.sh -o json", folder)
    assert outcome.code == 1
    (finding,) = report_of(outcome)["findings"]
    assert finding["rule"] == "missing-config"
    assert finding["file"] == "run.sh"
    assert finding["range"]["start"] == {"line": 5, "column": 24}
    assert finding["range"]["end"] == {"line": 5, "column": 33}
    text = dsguard("check run.sh", folder).out
    assert "--> run.sh:5:24" in text
    assert " 5 |     --deepspeed_config gone.json\n   |                        ^^^^^^^^^\n" in text


def test_reasons_point_into_the_script(dsguard: Dsguard, folder: Path) -> None:
    write(
        folder,
        {"run.sh": RUN, "ds.json": WRONG.replace("4}", '4, "gradient_accumulation_steps": 1}')},
    )
    text = dsguard("check run.sh", folder).out
    assert "--> ds.json:1:22" in text
    assert "::: run.sh:2:11" in text


# Where the config is.


def test_the_folder_of_the_user_comes_first(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"jobs/run.sh": RUN, "jobs/ds.json": WRONG})
    outcome = dsguard("check jobs/run.sh -o json", folder)
    assert checks_of(outcome) == [("ds.json", 4)]
    assert outcome.code == 0


@pytest.mark.parametrize("place", ["a/b/jobs", "a/b", "a"])
def test_else_the_config_is_looked_for_from_the_script_upwards(
    dsguard: Dsguard, tmp_path: Path, place: str
) -> None:
    write(tmp_path, {"a/b/jobs/run.sh": RUN, f"{place}/ds.json": WRONG})
    outcome = dsguard("check a/b/jobs/run.sh -o json", tmp_path)
    assert checks_of(outcome) == [(f"{place}/ds.json", 4)]
    absolute = dsguard(f"check {tmp_path}/a/b/jobs/run.sh -o json", tmp_path)
    assert checks_of(absolute) == [(f"{place}/ds.json", 4)]


def test_the_script_may_change_its_folder(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"run.sh": RUN.replace("deepspeed ", "cd ./models/big\ndeepspeed ", 1)})
    write(folder, {"models/big/ds.json": WRONG})
    outcome = dsguard("check run.sh -o json", folder)
    assert checks_of(outcome) == [("models/big/ds.json", 4)]
    write(folder, {"tools/run.sh": (folder / "run.sh").read_text()})
    outcome = dsguard("check tools/run.sh -o json", folder)
    assert checks_of(outcome) == [("models/big/ds.json", 4)]


def test_a_folder_that_only_the_shell_knows(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"run.sh": RUN.replace("deepspeed ", 'cd "$WORK"\ndeepspeed ', 1)})
    assert checks_of(dsguard("check run.sh -o json", folder)) == [("ds.json", 4)]
    (folder / "ds.json").unlink()
    outcome = dsguard("check run.sh", folder)
    assert outcome.code == 3
    assert "run.sh:3:1: this launch reads ds.json in a folder that is only known" in outcome.out
    assert "missing-config" not in outcome.out


# What cannot be checked.


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("echo done\n", "run.sh: holds no launch command"),
        ("deepspeed train.py\n", "run.sh: its launch command names no DeepSpeed config"),
        (
            "deepspeed one.py\ndeepspeed two.py\n",
            "run.sh: none of its 2 launch commands names a DeepSpeed config",
        ),
        (
            "deepspeed train.py --deepspeed $DS_CONFIG\n",
            "run.sh:2:32: --deepspeed names $DS_CONFIG, which is only known when it runs",
        ),
        (
            "deepspeed train.py --deepspeed /no/such/ds.json\n",
            "run.sh:2:32: --deepspeed names /no/such/ds.json, which is not on this machine",
        ),
        (
            "deepspeed train.py --deepspeed folder.json\n",
            "names folder.json, but the folder of the launch holds no such file",
        ),
        ("deepspeed train.py --deepspeed latin.json\n", "latin.json: is not UTF-8"),
        (
            "cat > made.json <<EOF\n{}\nEOF\ndeepspeed train.py --deepspeed made.json\n",
            "run.sh:5:1: this launch reads made.json, which the script writes before",
        ),
        (
            "cp models/zero2.json made.json\ntorchrun train.py --deepspeed made.json\n",
            "run.sh:3:1: this launch reads made.json, which the script writes before",
        ),
    ],
)  # fmt: skip
def test_what_is_not_checked_is_said(dsguard: Dsguard, folder: Path, lines: str, said: str) -> None:
    write(folder, {"run.sh": "#!/bin/bash\n" + lines, "folder.json/x": ""})
    (folder / "latin.json").write_bytes(b'{"train_batch_size": "\xe9"}')
    outcome = dsguard("check run.sh", folder)
    assert said in outcome.out
    assert outcome.code == (1 if "missing-config" in outcome.out else 3)
    assert ("the answer is incomplete" in outcome.out) == (outcome.code == 3)


def test_a_launch_without_a_config_is_left_out_beside_one_with(
    dsguard: Dsguard, folder: Path
) -> None:
    write(folder, {"run.sh": RUN + "torchrun --nproc_per_node 2 evaluate.py\n"})
    outcome = dsguard("check run.sh -o json", folder)
    assert outcome.code == 0
    assert checks_of(outcome) == [("ds.json", 4)]


def test_a_launch_that_stops_needs_no_config(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"run.sh": "#!/bin/bash\ndeepspeed --num_gpus lots train.py\n"})
    outcome = dsguard("check run.sh", folder)
    assert outcome.code == 1
    assert "(launcher-usage-error)\n  --> run.sh:2:11" in outcome.out


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("run.sh", RUN, "run.sh: holds launch commands of its own"),
        pytest.param("job.yaml", JOB, "job.yaml: is a job file", marks=yaml),
    ],
)
def test_a_file_and_a_command_are_one_too_many(
    dsguard: Dsguard, folder: Path, name: str, text: str, said: str
) -> None:
    write(folder, {name: text})
    outcome = dsguard(f"check {name} -- deepspeed train.py", folder)
    assert outcome.code == 3
    assert said in outcome.out


def test_a_config_may_be_checked_beside_a_script(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"run.sh": RUN, "other.json": WRONG})
    outcome = dsguard("check other.json run.sh -o json", folder)
    assert checks_of(outcome) == [("other.json", None), ("ds.json", 4)]


# Job files.


@yaml
def test_a_job_file_names_its_config(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"job.yaml": JOB, "ds.json": AUTO})
    outcome = dsguard("check job.yaml -o json", folder)
    assert outcome.code == 0
    (check,) = report_of(outcome)["checks"]
    assert check["config"] == "ds.json"
    facts = check["facts"]
    assert facts["front_end"]["value"] == "transformers"
    assert facts["micro_batch_size"]["value"] == 2
    assert facts["micro_batch_size"]["origin"]["kind"] == "jobfile"
    assert facts["micro_batch_size"]["origin"]["line"] == 5
    assert facts["launcher"]["state"] == "unknown"


@yaml
def test_the_config_of_a_job_may_lie_beside_it(dsguard: Dsguard, tmp_path: Path) -> None:
    write(tmp_path, {"jobs/job.yaml": JOB, "jobs/ds.json": AUTO})
    (check,) = report_of(dsguard("check jobs/job.yaml -o json", tmp_path))["checks"]
    assert check["config"] == "jobs/ds.json"


@yaml
def test_a_finding_in_a_job_file(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"job.yaml": JOB.replace("ds.json", "gone.json")})
    outcome = dsguard("check job.yaml", folder)
    assert outcome.code == 1
    assert "--> job.yaml:4:12" in outcome.out


@yaml
def test_facts_of_a_job_without_its_config(dsguard: Dsguard, folder: Path) -> None:
    """The Trainer's own numbers are known, whatever the config says; the rest is not."""
    (folder / "ds.json").unlink()
    write(folder, {"job.yaml": JOB})
    facts = report_of(dsguard("facts job.yaml -o json", folder))["checks"][0]["facts"]
    assert facts["gradient_accumulation_steps"]["value"] == 4
    for name in ("zero_stage", "precision", "gradient_clipping", "optimizer"):
        assert facts[name] == {
            "state": "unknown",
            "reason": "ds.json does not exist",
            "ignored": [],
        }


@yaml
@pytest.mark.parametrize(
    ("line", "name", "value", "said"),
    [
        ("max_grad_norm: 0.5\n", "gradient_clipping", 1.0, "transformers"),
        ("learning_rate: 1.0e-5\n", "learning_rate", 5e-5, "transformers"),
        ("per_device_train_batch_size: 2\n", "micro_batch_size", 8, "transformers"),
        ("bf16: true\n", "precision", "fp32", "DeepSpeed 0.19.8"),
    ],
)
def test_what_a_job_leaves_to_its_trainer(
    dsguard: Dsguard, folder: Path, line: str, name: str, value: object, said: str
) -> None:
    assert line in JOB
    write(folder, {"job.yaml": JOB.replace(line, ""), "ds.json": AUTO})
    outcome = dsguard("facts job.yaml -o json --target 0.19.8", folder)
    fact = report_of(outcome)["checks"][0]["facts"][name]
    assert fact["value"] == value
    assert fact["origin"]["kind"] == "default"
    assert fact["origin"]["whose"] == said


@yaml
def test_a_precision_that_the_framework_decides_is_not_known(
    dsguard: Dsguard, folder: Path
) -> None:
    job = "base_model: some/model\ndatasets: []\nmicro_batch_size: 1\ndeepspeed: ds.json\n"
    write(folder, {"job.yaml": job, "ds.json": '{"zero_optimization": {"stage": 2}}'})
    facts = report_of(dsguard("facts job.yaml -o json", folder))["checks"][0]["facts"]
    assert facts["precision"]["reason"] == "axolotl decides about bf16 when it runs"


def test_a_config_in_the_command_itself(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard(
        f"check -o concise -- torchrun train.py --deepspeed '{WRONG.strip()}'", folder
    )
    assert outcome.out.startswith("<--deepspeed>:1:1: error[DSG706] missing-zero-block: ")
    facts = dsguard(f"facts -- torchrun train.py --deepspeed '{AUTO}'", folder)
    assert "inline JSON" in facts.out


@yaml
def test_the_config_that_accelerate_builds(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"acc.yaml": ACCELERATE})
    outcome = dsguard("check acc.yaml -o json", folder)
    assert outcome.code == 0
    (check,) = report_of(outcome)["checks"]
    assert check["config"] == "acc.yaml"
    facts = {name: fact.get("value") for name, fact in check["facts"].items()}
    assert facts["world_size"] == 8
    assert facts["zero_stage"] == 2
    assert facts["gradient_accumulation_steps"] == 4
    assert facts["precision"] == "bf16"
    assert facts["front_end"] == "accelerate"


@yaml
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\nb: 2\n", "x.yaml:2:2: cannot be read: "),
        ("services:\n  web: {}\n", "x.yaml: is no job file that dsguard knows"),
        ("", "x.yaml: is no job file that dsguard knows"),
        ("- 1\n- 2\n", "x.yaml: is no job file that dsguard knows"),
        ("distributed_type: MULTI_GPU\nnum_processes: 2\n", "x.yaml: names no DeepSpeed config"),
    ],
)
def test_yaml_that_cannot_be_checked(dsguard: Dsguard, folder: Path, text: str, said: str) -> None:
    write(folder, {"x.yaml": text})
    outcome = dsguard("check x.yaml", folder)
    assert outcome.code == 3
    assert said in outcome.out


@yaml
def test_a_config_in_a_yaml_file_is_a_config(dsguard: Dsguard, folder: Path) -> None:
    """DeepSpeed's own reader takes such a text, whatever the name of the file."""
    write(folder, {"ds.yaml": PLAIN})
    outcome = dsguard("check ds.yaml --world-size 2 -o json", folder)
    assert checks_of(outcome) == [("ds.yaml", 2)]


def test_without_the_yaml_extra_it_says_how_to_get_it(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    write(folder, {"job.yaml": JOB})
    outcome = dsguard("check job.yaml", folder)
    assert outcome.code == 3
    assert "job.yaml: YAML cannot be read" in outcome.out
    assert "install dsguard[yaml]" in outcome.out


@pytest.mark.parametrize("command", ["check", "facts"])
@pytest.mark.parametrize(
    "launch",
    ["accelerate launch --config_file acc.yaml train.py", "llamafactory-cli train job.yaml"],
)
def test_without_the_yaml_extra_a_launch_says_it_too(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch, launch: str, command: str
) -> None:
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    config = "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: ds.json}\n"
    write(folder, {"job.yaml": JOB, "acc.yaml": config})
    outcome = dsguard(f"{command} -- {launch}", folder)
    assert outcome.code == 3
    said = outcome.out + outcome.err
    assert "launch command: its YAML cannot be read" in said
    assert "install dsguard[yaml]" in said
    assert "names no DeepSpeed config" not in said


@yaml
def test_training_arguments_in_json(dsguard: Dsguard, folder: Path) -> None:
    arguments = {"output_dir": "out", "deepspeed": "ds.json", "per_device_train_batch_size": 3}
    write(folder, {"args.json": json.dumps(arguments), "ds.json": AUTO})
    (check,) = report_of(dsguard("check args.json -o json", folder))["checks"]
    assert check["config"] == "ds.json"
    assert check["facts"]["micro_batch_size"]["value"] == 3


def test_json_that_is_nothing_of_this_is_checked_as_a_config(
    dsguard: Dsguard, folder: Path
) -> None:
    write(folder, {"package.json": '{"name": "x", "scripts": {}}'})
    outcome = dsguard("check package.json -o concise", folder)
    assert " not-a-deepspeed-config: " in outcome.out


# The whole.


def test_facts_of_a_script(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"run.sh": RUN})
    outcome = dsguard("facts run.sh", folder)
    assert outcome.code == 0
    assert outcome.out.startswith("One optimizer step trains on 32 samples: 4 per loader batch")
    assert "--num_gpus (run.sh:2:11)" in outcome.out


def test_facts_of_every_launch(dsguard: Dsguard, folder: Path) -> None:
    second = "deepspeed --num_gpus 2 two.py --deepspeed_config ds.json\n"
    write(folder, {"run.sh": RUN + second})
    outcome = dsguard("facts run.sh", folder)
    first, second_table = outcome.out.split("\n\nds.json, launched by: deepspeed --num_gpus 2")
    assert first.startswith("ds.json, launched by: deepspeed --num_gpus 4 train.py")
    assert "world_size                    2 " in second_table
    explained = dsguard("facts run.sh --explain world_size", folder).out
    assert [line.split(":")[0] for line in explained.split("\n\n")] == [
        "world_size is 4",
        "world_size is 2",
    ]


def test_facts_say_what_is_missing(dsguard: Dsguard, folder: Path) -> None:
    write(folder, {"run.sh": RUN + "deepspeed two.py --deepspeed $CONFIG\n"})
    outcome = dsguard("facts run.sh", folder)
    assert outcome.code == 3
    assert outcome.out.count("deepspeed_version") == 2
    assert outcome.out.splitlines()[-1].startswith("run.sh:3:30: error: --deepspeed names $CONFIG")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", "#!/bin/bash\ntouch planted\nX=$(touch planted)\n: > planted\n" + RUN),
        ("Makefile", "X := $(shell touch planted)\n" + MAKEFILE),
        pytest.param("job.yaml", "x: !!python/name:os.system\n" + JOB, marks=yaml),
        pytest.param("acc.yaml", "command_file: $(touch planted)\n" + ACCELERATE, marks=yaml),
    ],
)  # fmt: skip
def test_nothing_is_executed_or_written(
    dsguard: Dsguard, folder: Path, name: str, text: str
) -> None:
    write(folder, {name: text, "train.py": "open('planted', 'w')\n"})
    before = sorted(folder.rglob("*"))
    for command in ("check", "facts"):
        assert dsguard(f"{command} {name}", folder).out
    assert sorted(folder.rglob("*")) == before


# Files that lie there and are written once more.

STALE = (
    '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, '
    '"gradient_accumulation_steps": 2}'
)
SIXTEEN = "deepspeed --num_gpus 16 train.py --deepspeed_config ds.json\n"


def test_a_config_that_the_script_writes_is_not_judged_by_the_old_one(
    dsguard: Dsguard, tmp_path: Path
) -> None:
    made = "sed s/64/128/ tpl.json > ds.json\n"
    write(tmp_path, {"run.sh": f"#!/bin/bash\n{made}{SIXTEEN}", "ds.json": STALE, "train.py": ""})
    outcome = dsguard("check run.sh", tmp_path)
    assert "run.sh:3:1: this launch reads ds.json, which the script writes before" in outcome.out
    assert "batch-size-mismatch" not in outcome.out
    assert outcome.code == 3


@pytest.mark.parametrize("line", ["cp ds.json out/", "cat ds.json", "date > log.txt"])
def test_a_config_that_is_only_read_is_judged(dsguard: Dsguard, tmp_path: Path, line: str) -> None:
    write(tmp_path, {"run.sh": f"#!/bin/bash\n{line}\n{SIXTEEN}", "ds.json": STALE, "train.py": ""})
    assert "batch-size-mismatch" in dsguard("check run.sh", tmp_path).out


@pytest.mark.parametrize("there", [True, False])
def test_a_hostfile_that_the_script_writes_leaves_the_ranks_open(
    dsguard: Dsguard, tmp_path: Path, there: bool
) -> None:
    made = 'hosts=hosts2\nprintf "%s slots=8\\n" a b c d > $hosts\n'
    launch = "deepspeed --hostfile=$hosts train.py --deepspeed_config ds.json\n"
    write(tmp_path, {"run.sh": f"#!/bin/bash\n{made}{launch}", "ds.json": STALE, "train.py": ""})
    if there:
        write(tmp_path, {"hosts2": "a slots=2\n"})
    outcome = dsguard("check run.sh", tmp_path)
    assert outcome.code == 0
    assert "hostfile-missing" not in outcome.out
    assert "the script writes hosts2 before" in dsguard("facts run.sh", tmp_path).out


def test_a_yaml_file_that_the_script_writes(dsguard: Dsguard, tmp_path: Path) -> None:
    yaml = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n"
    lines = "sed -i s/1/2/ acc.yaml\naccelerate launch --config_file acc.yaml train.py\n"
    files = {"run.sh": f"#!/bin/bash\n{lines}", "acc.yaml": yaml, "ds.json": "{}", "train.py": ""}
    write(tmp_path, files)
    outcome = dsguard("check run.sh", tmp_path)
    assert "run.sh:3:1: this launch reads acc.yaml, which the script writes before" in outcome.out


def test_a_script_is_searched_once_for_all_of_its_launches(
    dsguard: Dsguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of a thousand launches without its config searched the whole script."""
    searched: list[int] = []

    class Counting:
        def search(self, text: str) -> None:
            searched.append(len(text))

    monkeypatch.setattr("dsguard.cli.launch_files._KEYS", Counting())
    lines = [f"torchrun train.py --deepspeed_config {i}.json\n" for i in range(50)]
    write(tmp_path, {"run.sh": "#!/bin/bash\n" + "".join(lines)})
    assert "0.json" in dsguard("check run.sh", tmp_path).out
    assert len(searched) == 1


def test_a_file_that_is_named_beside_its_folder_is_checked_once(
    dsguard: Dsguard, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    config = '{"train_batch_size": 8, "gradient_clipping": 1, "zero_optimizaton": {}}'
    (tmp_path / "sub" / "ds.json").write_text(config)
    script = "import deepspeed\nengine = deepspeed.initialize(model=m, config='sub/used.json')\n"
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "sub" / "used.json").write_text('{"train_batch_size": 8, "gradiant_clipping": 1}')
    for names in (". sub/ds.json", "sub/ds.json .", ". sub", "sub/ds.json sub .", "train.py ."):
        found = dsguard(f"check {names} -o concise", tmp_path).out
        assert found.count("zero_optimizaton is not a key") == 1, names
    alone = dsguard("check train.py . -o concise", tmp_path).out
    assert alone.count("gradiant_clipping is not a key") == 1
