"""One target for every kind of bytes that dsguard reads."""

from __future__ import annotations

import importlib
import json
import pkgutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer

import dsguard
from dsguard.baseline import BaselineError, read_baseline
from dsguard.checking import FAULT, Settings
from dsguard.cli import options
from dsguard.cli.contracts import contract_of
from dsguard.cli.fixing import fix_inputs
from dsguard.cli.inputs import collect
from dsguard.cli.jobs import gather
from dsguard.cli.launch_words import LaunchWords
from dsguard.cli.project import policy_of
from dsguard.comparing import compare
from dsguard.facts.contract import ContractError, read_contract
from dsguard.frontends.pinned import pinned
from dsguard.launch.context import Command
from dsguard.model.report import Report, Target, TargetOrigin
from dsguard.policy import Policy, make_report
from dsguard.reading.errors import ReadError
from dsguard.reading.load import load_path
from dsguard.records.overview import overview
from dsguard.records.reading import RecordError
from dsguard.records.run import read_run
from dsguard.render.baseline import render_baseline
from dsguard.render.comparison import render_comparison
from dsguard.render.concise import render_concise
from dsguard.render.facts_table import render_facts
from dsguard.render.github import render_github
from dsguard.render.json_report import render_json
from dsguard.render.run_json import render_run_json
from dsguard.render.run_page import render_run_page
from dsguard.render.run_text import render_run
from dsguard.render.sarif import render_sarif
from dsguard.render.text import render_text
from dsguard.render.wording import failed
from dsguard.rules import CRASH
from dsguard.runtime.checkpoints import origins_of
from dsguard.settings.find import find_settings
from dsguard.settings.load import read_project
from dsguard.settings.project import Project, SettingsError
from tests.conftest import FIXTURES
from tests.fuzz.effects import only_reading, warming_up
from tests.records.made import found, header, step, summary, write

_T = TypeVar("_T")

RELEASE = Target("0.19.8", TargetOrigin.OPTION)

CONFIG = b'{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "fp16": {"enabled": true}}\n'
SCRIPT = b"import deepspeed\nengine, *_ = deepspeed.initialize(config='ds.json', model=model)\n"
LAUNCH = b"deepspeed --num_gpus 2 train.py --deepspeed_config ds.json --learning_rate 1e-4"


@dataclass(frozen=True)
class FuzzTarget:
    """Bytes that come into a folder, and what the program makes of them.

    ``take`` gets the bytes and the folder, which is the working folder too, and raises where an
    answer is wrong. ``seeds`` are inputs of the usual form, ``words`` what the format is made of.
    """

    name: str
    take: Callable[[bytes, Path], None]
    seeds: Sequence[bytes]
    words: Sequence[bytes]

    def prepare(self, folder: Path) -> None:
        """Put into the folder what the inputs may name, and load all that is loaded lazily."""
        for name, data in (("ds.json", CONFIG), ("train.py", SCRIPT), ("hosts", b"h0 slots=4\n")):
            (folder / name).write_bytes(data)
        with warming_up():
            for module in pkgutil.walk_packages(dsguard.__path__, "dsguard."):
                if not module.name.startswith(("dsguard.__", "dsguard.integ", "dsguard.server")):
                    importlib.import_module(module.name)
            for seed in self.seeds[:2]:
                self.take(seed, folder)

    def __call__(self, data: bytes, folder: Path) -> None:
        """One input; nothing may happen but that files of the folder are read.

        Raises:
            AssertionError: an answer cannot be shown, or something else has happened.
        """
        self.take(data, folder)


def _put(data: bytes, folder: Path, name: str) -> None:
    (folder / name).write_bytes(data)


def _check(
    folder: Path, names: Sequence[str], launch: str | None = None, naming: bytes = b""
) -> None:
    """``dsguard check``, with every output there is and the fixes, nothing of it written."""
    command = Command.of_text(launch) if launch is not None else None
    with only_reading(folder, naming=naming):
        _answer(names, command, Settings(RELEASE, folder=folder), Policy())


def _answer(
    names: Sequence[str], command: Command | None, settings: Settings, policy: Policy
) -> None:
    inputs, failures = collect(names, command, settings)
    checks = [item.check() for item in inputs]
    report = make_report(checks, policy, failures)
    look_at(report)
    if _drawn(render_json(report).encode(), range(8)) == 0:  # these two take most of the time
        for item, check in zip(inputs, checks, strict=True):
            plain(render_facts(check, color=False, unicode=True, columns=80))
            read_contract(contract_of(item, check, None), "written")
    fixed, _ = fix_inputs(inputs, checks, policy, unsafe=True)
    for one in fixed:
        assert one.diff(color=False)
        assert one.new.text != one.old.text


def look_at(report: Report) -> None:
    """Every form of a report: no rule has crashed, and nothing in it moves a cursor."""
    crashes = [finding.message for _, finding in report.findings if finding.rule == CRASH]
    crashes += [failed(failure) for failure in report.failures if failure.help.startswith(FAULT)]
    assert not crashes, crashes
    plain(render_text(report, color=False, unicode=True, verbose=2, columns=60))
    assert plain(render_text(report, color=False, unicode=False)).isascii()
    plain(render_concise(report, unicode=True))
    annotations = plain(render_github(report)).splitlines()
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in annotations)
    assert json.loads(plain(render_json(report)))["version"] == 1
    assert json.loads(plain(render_sarif(report)))["version"] == "2.1.0"


def plain(text: str) -> str:
    """A text that any terminal and file can bear, given back."""
    odd = {char for char in text if not char.isprintable()} - {"\n"}
    assert not odd, odd
    text.encode("utf-8")
    return text


def _said(error: Exception) -> None:
    """An input that is refused, with words."""
    assert str(error)


def _drawn(data: bytes, choices: Sequence[_T]) -> _T:
    """One of several ways to take an input, the same one each time."""
    return choices[zlib.crc32(data) % len(choices)]


def config(data: bytes, folder: Path) -> None:
    _put(data, folder, "ds.json")
    hugging_face = "torchrun --nproc_per_node 2 train.py --deepspeed ds.json --bf16"
    launch = _drawn(data, (None, LAUNCH.decode(), hugging_face))
    _check(folder, [] if launch else ["ds.json"], launch)


def job_file(data: bytes, folder: Path) -> None:
    name = _drawn(data, ("job.yaml", "job.yaml", "job.json"))
    _put(data, folder, name)
    _check(folder, [name], naming=data)
    launches = (f"accelerate launch --config_file {name} train.py", f"axolotl train {name}")
    _check(folder, [], _drawn(data, launches), naming=data)


def shell(data: bytes, folder: Path) -> None:
    name = _drawn(data, ("run.sh", "run.sh", "run.sh", "job.sbatch", "README.md", "Makefile"))
    _put(data, folder, name)
    _check(folder, [name], naming=data)


def arguments(data: bytes, folder: Path) -> None:
    words = data.decode("utf-8", "surrogateescape").replace("\0", "").split("\n")
    launch = LaunchWords(tuple(words), given=True)
    with only_reading(folder, naming=data):
        _answer([], launch.command(), Settings(RELEASE, folder=folder), Policy())


def script(data: bytes, folder: Path) -> None:
    name = "train.ipynb" if data.lstrip().startswith(b"{") else "train.py"
    _put(data, folder, name)
    started = _drawn(data, (True, False))
    launch = f"deepspeed {name} --deepspeed_config ds.json" if started else None
    _check(folder, [] if started else [name], launch, naming=data)


def hostfile(data: bytes, folder: Path) -> None:
    _put(data, folder, "hosts")
    _put(data, folder, ".deepspeed_env")
    launch = "--include h0:0,1 train.py --deepspeed_config ds.json"
    front = _drawn(data, ("deepspeed", "DS_ENV_FILE=hosts deepspeed --launcher openmpi"))
    _check(folder, [], f"{front} --hostfile hosts {launch}")


def suppression(data: bytes, folder: Path) -> None:
    lines = data.splitlines() or [b""]
    comments = b"".join(b"  // dsguard: %b\n  # %b\n" % (line, line) for line in lines)
    _put(b"{\n" + comments + b'  "train_batch_sise": 8,\n' + CONFIG[1:], folder, "ds.json")
    _check(folder, ["ds.json"])
    comments = b"".join(b"# dsguard: %b\n" % line for line in lines)
    _put(b"#!/bin/sh\n" + comments + LAUNCH, folder, "run.sh")
    _check(folder, ["run.sh"])
    _put(comments + SCRIPT, folder, "train.py")
    _check(folder, ["train.py"])


def settings(data: bytes, folder: Path) -> None:
    for name in ("pyproject.toml", "dsguard.toml"):
        _put(data, folder, name)
        try:
            with only_reading(folder, naming=data):
                _with_settings(folder, find_settings(folder))
        except (SettingsError, ReadError, typer.BadParameter) as error:
            _said(error)
        (folder / name).unlink()


def _with_settings(folder: Path, file: Path | None) -> None:
    project = read_project(file, file.name) if file is not None else Project(folder)

    def judged_by(project: Project) -> Settings:
        return options.settings_of(project, target="0.19.8")

    policy = policy_of(project, judged_by(project), None)
    for names in ((), ("ds.json",)):
        nothing = LaunchWords((), given=False)
        inputs, failures = gather(names, nothing, project, judged_by, None)
        look_at(make_report([item.check() for item in inputs], policy, failures))


def pins(data: bytes, folder: Path) -> None:
    (folder / ".git").mkdir(exist_ok=True)
    for name in ("uv.lock", "pylock.toml", "requirements.txt", "pyproject.toml"):
        _put(data, folder, name)
        with only_reading(folder):
            pinned("deepspeed", folder)
        (folder / name).unlink()


def record(data: bytes, folder: Path) -> None:
    _put(data, folder, "run.jsonl")
    _put(data, folder, "run.rank1.jsonl")
    try:
        with only_reading(folder):
            run = read_run(Path("run.jsonl"))
    except RecordError as error:
        _said(error)
        return
    told = overview(run)
    for unicode in (True, False):
        plain(render_run(run, told, color=False, unicode=unicode))
    json.loads(plain(render_run_json(told)))
    page = plain(render_run_page(run, told))
    assert page.count("<script") == page.count("</script>")


def contract(data: bytes, folder: Path) -> None:
    _put(data, folder, "dsguard.json")
    with only_reading(folder):
        origins_of(folder, {})
        try:
            source = load_path(folder / "dsguard.json", "a.json")
            read = read_contract(source.text, source.name)
        except (ContractError, ReadError) as error:
            _said(error)
            return
    before = read_contract(_a_contract(), "b.json")
    plain(render_comparison(before, read, compare(before, read), color=False, unicode=True))


def baseline(data: bytes, folder: Path) -> None:
    _put(data, folder, "accepted.json")
    with only_reading(folder):
        try:
            read = read_baseline(load_path(folder / "accepted.json", "accepted.json"), folder)
        except (BaselineError, ReadError) as error:
            _said(error)
            return
        plain(render_baseline(read, color=False, unicode=True))
        assert read_baseline(load_path(folder / "accepted.json"), folder).entries == read.entries
        _answer(["ds.json"], None, Settings(RELEASE, folder=folder), Policy(baseline=read))


def _of(*patterns: str) -> list[bytes]:
    """The fixtures that fit, at most some dozens, spread over all."""
    files = sorted(path for pattern in patterns for path in FIXTURES.glob(pattern))
    return [path.read_bytes() for path in files[:: max(1, len(files) // 60)]]


def _a_contract() -> str:
    report = make_report([], Policy())
    assert not report.checks
    fact = {"state": "known", "value": 4, "origin": {"kind": "launch", "argument": "--num_gpus"}}
    return json.dumps(
        {
            "contract": 1,
            "config": "ds.json",
            "launch": "deepspeed train.py",
            "target": {"deepspeed": "0.19.8", "origin": "option"},
            "facts": {
                "world_size": fact,
                "train_batch_size": {"state": "unknown", "reason": "it is not given"},
                "optimizer": {"state": "conflict", "candidates": [fact]},
            },
            "inputs": [{"file": "ds.json", "sha256": "0" * 64}],
            "packages": {"torch": "2.9.0"},
            "guard": {"pending_micro_batches": 1, "optimizer_steps": 7},
        }
    )


def _records() -> Iterator[bytes]:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        lines = [header(), step(1), step(2, findings=[found()], grad_norm="inf"), summary()]
        yield write(path, *lines).read_bytes()
        yield write(path, header(world_size=2), step(1), header(), step(1), torn="{").read_bytes()


_ACCEPTED = json.dumps(
    {
        "version": 1,
        "findings": [
            {"file": "ds.json", "pointer": "/fp16", "rule": "unknown-key", "message": "x"},
            {"file": "gone.json", "rule": "no-batch-size", "message": "y"},
        ],
    }
).encode()
_SETTINGS = (
    b'[tool.dsguard]\nselect = ["all"]\nignore = ["batch"]\ntarget = "0.19.8"\nworld-size = 8\n'
    b'locked = ["unknown-key"]\nexclude = ["old/*.json", "!x"]\n[tool.dsguard.severity]\n'
    b'no-batch-size = "warning"\n[[tool.dsguard.job]]\nname = "a"\nconfig = "ds.json"\n'
    b'launch = "deepspeed --num_gpus 2 train.py"\n[[tool.dsguard.ignore-at]]\n'
    b'rule = "unknown-key"\nfile = "*.json"\nreason = "r"\npointer = "/fp16"\n'
    b"expires = 2031-01-02\n",
    b'fail-on = "never"\nrequired-version = ">=0.1"\nfront-end = "auto"\nhostfile = "hosts"\n',
)
_PINS = (
    b'[[package]]\nname = "deepspeed"\nversion = "0.18.0"\n',
    b"deepspeed==0.17.1 \\\n    --hash=sha256:00\ntorch>=2\n-r other.txt\n",
    b'[project]\nname = "x"\ndependencies = ["deepspeed==0.16.4"]\n'
    b"[dependency-groups]\ndev = [\"deepspeed[a]===0.16.4; python_version>'3'\"]\n",
)
_KEYS = b"""train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps fp16 bf16
    zero_optimization stage optimizer scheduler params type enabled offload_optimizer device cpu
    gradient_clipping zero_allow_untested_optimizer activation_checkpointing loss_scale""".split()
_SHELL = b"""deepspeed torchrun accelerate launch srun mpirun --num_gpus --nproc_per_node=4 train.py
    --deepspeed_config ds.json $N "$@" ${A[@]} if then fi for in do done case esac ( ) { } | && ||
    ;; $( ` <<EOF EOF export env cd eval bash -c #SBATCH --ntasks=4 --hostfile hosts \\\n ```bash
    ```""".split(b" ")
_PYTHON = b"""import def class return deepspeed.initialize( argparse.ArgumentParser( .add_argument(
    TrainingArguments( Accelerator( for in if else lambda : = ( ) [ ] { } ** * , .backward() .step()
    .zero_grad() % / 'a' " f" \"\"\" \n\x20\x20 \nasync match case _: yield await""".split(b" ")

TARGETS = {
    target.name: target
    for target in (
        FuzzTarget("config", config, _of("rules/*/*/*.json"), _KEYS),
        FuzzTarget("job-file", job_file, _of("jobs/*/*.y*ml", "jobs/*/*.json", "rules/**/*.yaml"),
                   [*_KEYS, b"distributed_type: DEEPSPEED\n", b"deepspeed_config:\n  ",
                    b"- ", b"|\n"]),
        FuzzTarget("shell", shell, _of("launch/*[!n]", "rules/*/*/*.sh"), _SHELL),
        FuzzTarget("arguments", arguments, [LAUNCH.replace(b" ", b"\n"), b"accelerate\nlaunch"],
                   [word + b"\n" for word in _SHELL]),
        FuzzTarget("script", script, [SCRIPT, *_of("rules/*/*/*.py", "rules/*/*/*.ipynb")],
                   _PYTHON),
        FuzzTarget("hostfile", hostfile, [b"h0 slots=4\nh1 slots=4\n", b"# a\nA=1\n"],
                   [b"slots=", b" ", b"h0", b"#"]),
        FuzzTarget("suppression", suppression, [b"ignore[unknown-key]", b"ignore-file[all] -- why"],
                   [b"ignore", b"[", b"]", b"unknown-key", b"DSG101", b" ", b"until 2031-01-01"]),
        FuzzTarget("settings", settings, _SETTINGS, [b"[[job]]\n", b"= [", b'"""', b"{", b"."]),
        FuzzTarget("pins", pins, _PINS, [b"deepspeed", b"==", b"[[package]]\n", b"[project]\n"]),
        FuzzTarget("record", record, list(_records()),
                   [b'"step":', b'"kind": "header"', b"{", b"}"]),
        FuzzTarget("contract", contract, [_a_contract().encode()], [b'"state": "known"', b"null"]),
        FuzzTarget("baseline", baseline, [_ACCEPTED], [b'"file": "ds.json"', b"[]", b"{}"]),
    )
}  # fmt: skip
"""By name."""
