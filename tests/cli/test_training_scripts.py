"""``dsguard check train.py``: the config that a script holds or names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dsguard.script.load import MAX_BYTES, load_script
from dsguard.script.script import Script
from tests.conftest import Dsguard

LITERAL = """\
import deepspeed

CONFIG = {
    "train_batch_size": 8,
    "train_micro_batch_size_per_gpu": 3,
    "gradient_accumulation_steps": 1,
    "zero_optimizaton": {"stage": args.stage},
}
engine, *_ = deepspeed.initialize(model=model, config=CONFIG)
"""
NAMED = "import deepspeed\nengine, *_ = deepspeed.initialize(model=model, config='{}')\n"
BY_ARGUMENT = """\
import argparse
import deepspeed

parser = argparse.ArgumentParser()
parser.add_argument("--deepspeed_config", default="conf/ds.json")
parser.add_argument("--stage", type=int, default=9)
args = parser.parse_args()
engine, *_ = deepspeed.initialize(args=args, model=model)
"""
CONFIG = '{\n  "zero_optimizaton": {},\n  "train_micro_batch_size_per_gpu": 1\n}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "ds.json").write_text(CONFIG)
    return tmp_path


def test_a_dict_is_linted_where_it_stands(dsguard: Dsguard, folder: Path) -> None:
    (folder / "train.py").write_text(LITERAL)
    outcome = dsguard("check train.py -o concise", folder)
    assert outcome.out.splitlines() == [
        "train.py:4:25: info[DSG208] world-size-unknown: train_batch_size 8 counts the samples of "
        "all processes, and how many there are is unknown: no launch command was given",
        "train.py:7:5: warning[DSG101] unknown-key: zero_optimizaton is not a key that DeepSpeed "
        "knows; DeepSpeed ignores it",
    ]


def test_a_launch_tells_what_the_dict_does_not(dsguard: Dsguard, folder: Path) -> None:
    (folder / "train.py").write_text(LITERAL)
    for line in ("check -o concise train.py", "check -o concise"):
        outcome = dsguard(f"{line} -- deepspeed --num_gpus 2 train.py", folder)
        assert "train.py:4:25: error[DSG201]" in outcome.out
        assert outcome.code == 1


def test_no_edit_of_json_is_offered_for_python(dsguard: Dsguard, folder: Path) -> None:
    (folder / "train.py").write_text(LITERAL.replace("optimizaton", "optimization"))
    outcome = dsguard("check -o json train.py -- deepspeed --num_gpus 2 train.py", folder)
    fixes = [f["fix"] for f in json.loads(outcome.out)["findings"] if f["fix"]]
    assert fixes
    assert all(fix["safety"] == "display" and not fix["edits"] for fix in fixes)


@pytest.mark.parametrize("script", [NAMED.format("conf/ds.json"), BY_ARGUMENT])
def test_the_config_that_a_script_names(script: str, dsguard: Dsguard, folder: Path) -> None:
    (folder / "train.py").write_text(script)
    for line in ("check -o concise train.py", "check -o concise -- deepspeed train.py"):
        outcome = dsguard(line, folder)
        assert "conf/ds.json:2:3: warning[DSG101]" in outcome.out, outcome.out


def test_the_config_beside_a_script_in_another_folder(dsguard: Dsguard, folder: Path) -> None:
    (folder / "conf" / "train.py").write_text(NAMED.format("ds.json"))
    outcome = dsguard("check -o concise conf/train.py", folder)
    assert "conf/ds.json:2:3: warning[DSG101]" in outcome.out


def test_arguments_stand_for_what_the_launch_gives(dsguard: Dsguard, folder: Path) -> None:
    text = BY_ARGUMENT.replace(
        "args=args, model=model",
        'model=model, config={"train_batch_size": 2, "zero_optimization": {"stage": args.stage}}',
    )
    (folder / "train.py").write_text(text)
    assert dsguard("check -o concise train.py", folder).code == 0
    outcome = dsguard("check -o concise -- deepspeed --num_gpus 2 train.py", folder)
    assert "train.py:8:" in outcome.out
    assert "error" in outcome.out
    assert dsguard("check -- deepspeed --num_gpus 2 train.py --stage 2", folder).code == 0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("train.py", "x = (", "cannot be read as a script: it is no Python"),
        ("train.py", "print('hello')", "shows nothing of DeepSpeed"),
        ("train.py", NAMED.format("gone.json"), "the script reads gone.json, which is not here"),
        ("train.ipynb", "{}", "has no cells"),
        ("gone.py", None, "does not exist"),
    ],
)
def test_what_cannot_be_checked(
    name: str, text: str | None, words: str, dsguard: Dsguard, folder: Path
) -> None:
    if text is not None:
        (folder / name).write_text(text)
    outcome = dsguard(f"check {name}", folder)
    assert outcome.code == 3
    assert words in outcome.out
    assert "Traceback" not in outcome.out


def test_a_folder_with_scripts(dsguard: Dsguard, folder: Path) -> None:
    """Each script that trains with its config, which is not checked a second time alone."""
    (folder / "train.py").write_text(NAMED.format("conf/ds.json"))
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "sft.py").write_text(LITERAL)
    (folder / "other.json").write_text('{"train_micro_batch_size_per_gpu": 0}')
    outcome = dsguard("check . -o concise", folder)
    assert [line.split(" ")[0] for line in outcome.out.splitlines()] == [
        "deep/er/sft.py:4:25:",
        "deep/er/sft.py:7:5:",
        "conf/ds.json:2:3:",
        "other.json:1:36:",
    ]
    (folder / "pyproject.toml").write_text('[tool.dsguard]\nexclude = ["deep", "other.json"]\n')
    assert len(dsguard("check . -o concise", folder).out.splitlines()) == 1


def test_a_file_that_a_script_changes_is_fixed_where_it_does_not(
    dsguard: Dsguard, folder: Path
) -> None:
    (folder / "ds.json").write_text(FILE.replace("train_batch_size", "grad_clipping"))
    text = LOADED.format(path='"ds.json"', change='config["gradiant_clipping"] = 1.0')
    (folder / "train.py").write_text(text)
    (folder / "conf" / "ds.json").unlink()
    outcome = dsguard("check . --fix -o concise", folder)
    assert "train.py:11:31: warning[DSG101]" in outcome.out
    assert (folder / "train.py").read_text() == text
    (folder / "ds.json").write_text(FILE.replace("train_batch_size", "gradient_cliping"))
    dsguard("check . --fix --unsafe-fixes", folder)
    assert '"gradient_clipping": 32' in (folder / "ds.json").read_text()
    assert (folder / "train.py").read_text() == text


def test_a_folder_of_unrelated_scripts_is_searched_in_silence(
    dsguard: Dsguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(path: Path, name: str) -> Script | None:
        read.append(name)
        return load_script(path, name)

    monkeypatch.setattr("dsguard.cli.inputs.load_script", counted)
    for number in range(1000):
        (tmp_path / f"module_{number}.py").write_text(f"import torch\nlr = {number} / (\n")
    (tmp_path / "words.py").write_text("# without DeepSpeed\nprint(1)\n")
    (tmp_path / "far.py").write_text(NAMED.format("gone.json"))
    (tmp_path / "generated.py").write_text(LITERAL + "#" * MAX_BYTES)
    (tmp_path / "train.py").write_text(LITERAL)
    outcome = dsguard("check . -o concise", tmp_path)
    assert {line.split(":")[0] for line in outcome.out.splitlines()} == {"train.py"}
    assert outcome.code == 0
    assert read == ["far.py", "train.py", "words.py"]


def test_a_folder_with_a_script_that_cannot_be_read(dsguard: Dsguard, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import deepspeed\nprint 1\n")
    outcome = dsguard("check .", tmp_path)
    assert outcome.code == 3
    assert "train.py: cannot be read as a script: it is no Python" in outcome.out


def test_a_script_beside_another_launch(dsguard: Dsguard, folder: Path) -> None:
    (folder / "train.py").write_text(LITERAL)
    (folder / "other.py").write_text(LITERAL)
    outcome = dsguard("check train.py -- deepspeed other.py", folder)
    assert outcome.code == 3
    assert "is not the script that the command after -- starts" in outcome.out


def test_facts_of_a_script(dsguard: Dsguard, folder: Path) -> None:
    (folder / "train.py").write_text(LITERAL)
    outcome = dsguard("facts train.py -- deepspeed --num_gpus 2 train.py", folder)
    assert "train.py:5:39" in outcome.out
    assert outcome.code == 0


def test_a_config_that_is_only_known_when_the_script_runs(dsguard: Dsguard, folder: Path) -> None:
    (folder / "train.py").write_text(NAMED.replace("'{}'", "make()"))
    outcome = dsguard("check train.py", folder)
    assert outcome.code == 0
    assert "No problems found" in outcome.out


def test_reasons_in_the_json_beside_the_script(dsguard: Dsguard, folder: Path) -> None:
    (folder / "ds.json").write_text('{"train_batch_size": 8,\n "gradient_accumulation_steps": 4}')
    (folder / "train.py").write_text(
        NAMED.format("ds.json") + "for x in loader:\n    loss = engine(x) / 4\n"
        "    engine.backward(loss)\n    engine.step()\n"
    )
    outcome = dsguard("check train.py", folder)
    assert "--> train.py:4:24" in outcome.out
    assert "::: ds.json:2:33" in outcome.out


LOADED = """\
import argparse
import json
import deepspeed

parser = argparse.ArgumentParser()
parser.add_argument("--deepspeed_config", default="ds.json")
parser.add_argument("--samples", type=int, default=4)
args = parser.parse_args()
with open({path}) as file:
    config = json.load(file)
{change}
engine, *_ = deepspeed.initialize(model=model, config=config)
"""
FILE = """\
{
  "train_batch_size": 32,
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 4,
  "zero_optimization": {"stage": 9}
}
"""


@pytest.mark.parametrize("path", ['"ds.json"', "args.deepspeed_config"])
@pytest.mark.parametrize("named", ["", "--deepspeed_config ds.json"])
def test_a_loaded_config_that_the_script_changes(
    path: str, named: str, dsguard: Dsguard, folder: Path
) -> None:
    """What counts is what the script makes of the file, and it is said where that is written."""
    (folder / "ds.json").write_text(FILE)
    change = (
        'config["train_micro_batch_size_per_gpu"] = args.samples\n'
        'config["zero_optimization"]["stage"] = 7\n'
        'config.update({"gradiant_clipping": 1.0})'
    )
    (folder / "train.py").write_text(LOADED.format(path=path, change=change))
    launch = f"-- deepspeed --num_gpus 2 train.py --samples 8 {named}"
    findings = json.loads(dsguard(f"check train.py -o json {launch}", folder).out)["findings"]
    found = {(f["rule"], f["file"], f["range"]["start"]["line"]) for f in findings}
    assert found == {
        ("batch-size-mismatch", "ds.json", 2),
        ("out-of-range-value", "train.py", 12),
        ("unknown-key", "train.py", 13),
    }
    in_script = [f["fix"] for f in findings if f["file"] == "train.py" and f["fix"]]
    assert in_script
    assert not any(fix["edits"] for fix in in_script)


@pytest.mark.parametrize(
    "change",
    [
        "config = patched(config)",
        "patch(config)",
        'config["zero_optimization"].pop("stage")\nconfig.pop("train_batch_size")',
        'config[key] = 1\nconfig["zero_optimization"][key] = 1',
        "if on:\n    config['train_batch_size'] = config['zero_optimization']['stage'] = 1",
        "del config['train_batch_size']\ndel config['zero_optimization']['stage']",
        "config = {**other, **config}",
        "if 'optimizer' in config:\n    config['optimizer']['params']['lr'] = 1\ndel config[key]",
        "options = {'model': model, 'config': patched(config)}\ndeepspeed.initialize(**options)",
        "if args.samples:\n    config = other",
        "json.dump(config, file)\nargs.deepspeed_config = file.name",
    ],
)
def test_a_loaded_config_whose_changes_are_not_known(
    change: str, dsguard: Dsguard, folder: Path
) -> None:
    (folder / "ds.json").write_text(FILE.replace('": 32', '": 33'))
    text = LOADED.format(path="args.deepspeed_config", change=change)
    (folder / "train.py").write_text(text)
    for names in ("train.py", "train.py -- deepspeed train.py --deepspeed_config ds.json"):
        outcome = dsguard(f"check -o concise {names}", folder)
        assert (outcome.code, outcome.out) == (0, "")


@pytest.mark.parametrize("passed", ["args={'train_batch_size': 8}", "config=make()"])
def test_a_file_that_the_script_does_not_hand_over(
    passed: str, dsguard: Dsguard, folder: Path
) -> None:
    """The launch names it, and nobody knows whether DeepSpeed sees what it says."""
    (folder / "ds.json").write_text(FILE.replace('": 32', '": 33'))
    text = f"import deepspeed\nengine, *_ = deepspeed.initialize(model=model, {passed})\n"
    (folder / "train.py").write_text(text)
    launch = "deepspeed --num_gpus 2 train.py --deepspeed_config ds.json"
    assert dsguard(f"check -o concise train.py -- {launch}", folder).out == ""


def test_a_config_that_the_script_names_needs_no_place_in_the_launch(
    dsguard: Dsguard, folder: Path
) -> None:
    """The launch names no config; that is only worth a word where nothing else reads one."""
    (folder / "ds.json").write_text(FILE)
    launch = "ds.json -- deepspeed --num_gpus 2 train.py --ds_file ds.json"
    text = LOADED.replace("--deepspeed_config", "--ds_file").replace("ds.json", "none.json")
    for path, said in (("args.ds_file", False), ("name", True)):
        (folder / "train.py").write_text(text.format(path=path, change=""))
        assert ("config-not-in-launch" in dsguard(f"check -o concise {launch}", folder).out) == said


@pytest.mark.parametrize(
    ("text", "front_end"),
    [
        ("import accelerate\naccelerate.DeepSpeedPlugin(zero_stage=2)\n", "accelerate"),
        ("from accelerate.utils import DeepSpeedPlugin as P\nP(zero_stage=2)\n", "accelerate"),
        ("import pytorch_lightning as pl\npl.Trainer(strategy='deepspeed')\n", "lightning"),
        (f"import accelerate\n{LITERAL}", "plain"),
    ],
)
def test_who_reads_the_config_of_a_script(
    text: str, front_end: str, dsguard: Dsguard, folder: Path
) -> None:
    (folder / "train.py").write_text(text)
    facts = json.loads(dsguard("check train.py -o json", folder).out)["checks"][0]["facts"]
    assert facts["front_end"]["value"] == front_end
    assert "unfilled-auto" not in dsguard("check train.py -o concise", folder).out


LOOP = """\
for batch in loader:
    loss = engine(batch).mean()
    engine.backward(loss)
    engine.step()
    scheduler.step()
"""
STEPPED = """\
import deepspeed
import torch

CONFIG = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}
CONFIG["zero_optimization"] = {"stage": 1}
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
engine, _, _, _ = deepspeed.initialize(
    model=model, optimizer=optimizer, config=CONFIG, lr_scheduler=scheduler
)
"""


@pytest.mark.parametrize(
    ("comment", "rules"),
    [
        ("", ["scheduler-stepped-beside-engine"]),
        ("  # dsguard: ignore[scheduler-stepped-beside-engine] on purpose", []),
        (
            "  # dsguard: ignore[schedule-stepped-beside-engine]",
            ["scheduler-stepped-beside-engine", "unknown-suppression"],
        ),
    ],
)
def test_a_comment_in_the_script_suppresses(
    comment: str, rules: list[str], dsguard: Dsguard, folder: Path
) -> None:
    text = STEPPED + LOOP.replace("scheduler.step()", f"scheduler.step(){comment}")
    (folder / "train.py").write_text(text)
    report = json.loads(dsguard("check train.py -o json", folder).out)
    assert [finding["rule"] for finding in report["findings"]] == rules
    assert report["summary"]["suppressed"] == (not rules)


def test_a_comment_in_a_dict_suppresses(dsguard: Dsguard, folder: Path) -> None:
    text = LITERAL.replace("args.stage},", "args.stage},  # dsguard: ignore[unknown-key] ours")
    (folder / "train.py").write_text(text)
    report = json.loads(dsguard("check train.py -o json", folder).out)
    assert [finding["rule"] for finding in report["findings"]] == ["world-size-unknown"]
    assert report["summary"]["suppressed"] == 1


# How many ranks plain python makes.

CONFIG_OF_TWO = (
    '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, '
    '"gradient_accumulation_steps": 2}'
)
ARGUMENTS = """
import argparse, deepspeed
parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
args = parser.parse_args()
engine, *_ = deepspeed.initialize(args=args, model=model)
"""
SPAWNS = ARGUMENTS + "import torch.multiprocessing as mp\nmp.spawn(f, nprocs=8)\n"


@pytest.mark.parametrize(
    ("launch", "ranks"),
    [
        ("python train.py", "1"),
        ("python -m pdb -c continue train.py", "1"),
        ("python -m cProfile -o x train.py", "1"),
        ("python -m coverage run --branch train.py", "1"),
        (
            "python -m debugpy --listen 5678 -m torch.distributed.run --nproc_per_node 8 train.py",
            "8",
        ),
        ("python spawns.py", "unknown"),
        ("python absent.py", "unknown"),
        ("python broken.py", "unknown"),
        ("python -m package.train", "unknown"),
        ("WORLD_SIZE=8 RANK=0 python train.py", "8"),
        ("mpirun -np 2 python train.py", "2"),
        ("mpirun -np 2 python spawns.py", "unknown"),
    ],
)
def test_python_is_one_process_only_where_the_script_starts_no_others(
    dsguard: Dsguard, tmp_path: Path, launch: str, ranks: str
) -> None:
    files = {"train.py": ARGUMENTS, "spawns.py": SPAWNS, "broken.py": "def f(:"}
    files["ds.json"] = CONFIG_OF_TWO
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    line = f"{launch} --deepspeed_config ds.json"
    (row,) = [
        line
        for line in dsguard(f"facts -- {line}", tmp_path).out.splitlines()
        if line.startswith("world_size")
    ]
    assert row.split()[1] == ranks
    found = dsguard(f"check -- {line}", tmp_path).out
    assert ("batch-size-mismatch" in found) == (ranks in ("1", "2"))
    if "spawns" in launch:
        assert "no-launcher" not in found


def test_silence_about_a_config_that_is_not_known_says_so(dsguard: Dsguard, folder: Path) -> None:
    made = "import deepspeed\nengine, *_ = deepspeed.initialize(model=model, config=make())\n"
    (folder / "made.py").write_text(made)
    (folder / "known.py").write_text(NAMED.format("conf/fine.json"))
    (folder / "conf" / "fine.json").write_text('{"train_micro_batch_size_per_gpu": 1}')
    known = dsguard("check known.py", folder)
    assert (known.code, known.out.splitlines()[0][:18]) == (0, "No problems found ")
    alone = dsguard("check made.py", folder)
    note, summary = alone.out.splitlines()
    assert re.fullmatch(
        r"note: the config is not known, so \d\d rules could not judge; "
        r"dsguard check -v lists them",
        note,
    )
    assert summary.startswith("No problems found in 1 file; ")
    assert dsguard("check made.py -q", folder).out == ""
    assert "note: " not in dsguard("check made.py -v", folder).out
    both = dsguard("check made.py known.py", folder)
    listed = "dsguard check -v lists them\nNo problems found"
    assert f"could not judge in 1 of 2 checks; {listed}" in both.out
    started = dsguard("run --dry-run -- deepspeed --num_gpus 2 made.py", folder)
    assert f"could not judge; {listed}" in started.err
