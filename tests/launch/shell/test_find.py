"""Which files are searched, and which of their commands start a training."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsguard.launch.read import Surroundings, read_launch
from dsguard.launch.shell.find import FoundLaunch, find_launches
from dsguard.launch.shell.kinds import kind_of
from dsguard.model.source import Source

from .fixtures import SCRIPTS, source_of

LAUNCH = "deepspeed --num_gpus 2 train.py --deepspeed ds.json"


def found(text: str, name: str = "run.sh") -> list[FoundLaunch]:
    return find_launches(Source(name, text)).launches


def lines(text: str, name: str = "run.sh") -> list[str]:
    return [launch.command.line for launch in found(text, name)]


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("run.sh", "", True),
        ("a/b.SBATCH", "", True),
        ("job.slurm", "", True),
        ("x.job", "", True),
        ("Makefile", "", True),
        ("rules.mk", "", True),
        ("README.md", "", True),
        ("launch", "#!/usr/bin/env bash\n", True),
        ("launch", "#!/bin/sh -e\n", True),
        ("launch", "#!/usr/bin/env python\n", False),
        ("launch", LAUNCH, False),
        ("train.py", LAUNCH, False),
        ("ds_config.json", "{}", False),
        ("<stdin>", LAUNCH, False),
    ],
)
def test_files_are_told_by_name_or_first_line(name: str, text: str, read: bool) -> None:
    assert (kind_of(Source(name, text)) is not None) is read
    if not read:
        assert found(text, name) == []


@pytest.mark.parametrize(
    "command",
    [
        "deepspeed train.py",
        "torchrun t.py",
        "accelerate launch t.py",
        "accelerate $SUBCOMMAND t.py",
        "python -m torch.distributed.run t.py",
        "python3.11 -m deepspeed.launcher.runner t.py",
        "python -m accelerate.commands.launch t.py",
        "$PYTHON -m torch.distributed.launch t.py",
        "nohup env A=1 torchrun t.py &",
        "srun -N 2 torchrun t.py",
        "srun python t.py",
        "mpirun -np 2 python -m pkg.train",
        "mpiexec -n 2 python t.py --deepspeed_config ds.json",
        "singularity exec --nv i.sif torchrun t.py",
        "docker run --gpus all image deepspeed t.py",
        "$WRAPPER torchrun t.py",
        "bash -c 'torchrun t.py'",
        "python t.py --deepspeed ds.json",
        "python -m pkg.train --deepspeed_config=ds.json",
        "./train.py --deepspeed ds.json",
        "$LAUNCHER train.py --deepspeed ds.json",
        "python t.py --strategy deepspeed_stage_3",
        "python t.py trainer=ds strategy=deepspeed",
        "uv run train.py --deepspeed ds.json",
        "X=$(torchrun t.py | tail -1)",
        "ssh -p 22 node1 'cd /work && torchrun t.py'",
        "ssh node1 <<X\ntorchrun t.py\nX",
        "ssh node1 torchrun t.py",
        "pdsh -w node[1-4] 'torchrun t.py'",
        "tmux new-session -d -s train 'torchrun t.py'",
        "tmux send-keys -t train 'torchrun t.py' C-m",
        "screen -dmS train bash -c 'torchrun t.py'",
        "sbatch -N 2 --wrap='srun torchrun t.py'",
        "cat <<X | sbatch\n#!/bin/bash\nsrun torchrun t.py\nX",
        "jsrun -n 8 python t.py --deepspeed ds.json",
        "bsub -n 4 torchrun t.py",
        "llamafactory-cli train a.yaml",
        "axolotl train a.yaml",
        "swift sft --model m",
        "trl sft --config a.yaml",
    ],
)
def test_commands_that_start_a_training(command: str) -> None:
    assert len(found(command)) == 1


@pytest.mark.parametrize(
    "command",
    [
        "deepspeed",
        "deepspeed --help",
        "torchrun --version",
        "accelerate config",
        "accelerate env",
        "echo deepspeed train.py --deepspeed ds.json",
        "pip install deepspeed torchrun",
        "which deepspeed torchrun",
        "command -v torchrun",
        "pkill -f torchrun",
        "ps aux | grep torchrun | xargs kill",
        "cp deepspeed train.py",
        "python train.py",
        "python -c 'import deepspeed' --deepspeed ds.json",
        "python -m pip install deepspeed",
        "python setup.py install",
        "srun hostname",
        "srun --pty bash",
        "srun python -m pip install deepspeed",
        "srun python -c 'print(1)'",
        "mpirun -np 2 hostname",
        "bash other.sh --deepspeed ds.json",
        "docker run image bash",
        "alias ds='deepspeed train.py'",
        "trap 'torchrun t.py' EXIT",
        "llamafactory-cli chat a.yaml",
        "axolotl inference a.yaml",
        "swift export --model m",
        "cat <<X\ndeepspeed train.py\nX",
        "cat > notes.txt <<X\n# Training\ndeepspeed train.py\nX",
        "python - <<X\ndeepspeed train.py\nX",
        "bash run.sh <<X\ndeepspeed train.py\nX",
        "ssh node1 ls",
        "ssh -p deepspeed",
        "tmux kill-session -t deepspeed",
        "echo $(which deepspeed) `which torchrun`",
        "# deepspeed train.py",
        ": deepspeed train.py",
        "'deepspeed train.py'",
    ],
)
def test_commands_that_start_none(command: str) -> None:
    assert lines(command) == []


def test_plain_python_counts_only_without_a_launcher() -> None:
    plain = "python eval.py --deepspeed ds.json"
    assert lines(plain) == [plain]
    assert lines(f"{plain}\n{LAUNCH}") == [LAUNCH]
    assert lines("srun python prepare.py\n" + LAUNCH) == [LAUNCH]


def test_commands_before_a_syntax_error_are_kept() -> None:
    assert lines(f"{LAUNCH}\nif true; then\n") == [LAUNCH]
    assert lines(f"if true\n{LAUNCH}\n") == []
    assert lines(f"fi\n{LAUNCH}\n") == []


def test_a_launch_met_twice_is_one() -> None:
    assert lines(f"f() {{ {LAUNCH}; }}\nf; f\n") == [LAUNCH]


@pytest.mark.parametrize(
    ("before", "folder"),
    [
        ("", ""),
        ("cd src\n", "src"),
        ("cd a && cd b/\n", "a/b"),
        ("cd .\n", ""),
        ("cd src || exit\n", "src"),
        ("(cd src)\n", ""),
        ("cd /abs\n", None),
        ("cd\n", None),
        ("cd -\n", None),
        ("cd $DIR\n", None),
        ("D=src; cd $D\n", "src"),
        ('cd "$(dirname "$0")"\n', None),
        ("if x; then cd src; fi\n", None),
        ("pushd src\n", "src"),
        ("pushd src; popd\n", None),
        ("cd ~/x\n", None),
    ],
)
def test_the_folder_of_a_launch(before: str, folder: str | None) -> None:
    (launch,) = found(before + LAUNCH)
    assert launch.folder_hint == folder


@pytest.mark.parametrize(
    ("before", "exported"),
    [
        ("A=1", []),
        ("export A=1", ["A=1"]),
        ("A=1; export A", ["A=1"]),
        ("export A=1; A=2", ["A=2"]),
        ("export A=1; export -n A", []),
        ("export A=1; unset A", []),
        ("declare -x A=1; typeset -x B=2", ["A=1", "B=2"]),
        ("set -a; A=1; set +a; B=2", ["A=1"]),
        ("set -o allexport; A=1", ["A=1"]),
        ("export A='x y'", ["A=x y"]),
        ("export A=(1 2)", []),
        ("(export A=1)", []),
        ("export A", []),
    ],
)
def test_variables_that_the_launch_gets(before: str, exported: list[str]) -> None:
    (launch,) = found(f"{before}\n{LAUNCH}")
    assert [word.text for word in launch.command.exported] == exported
    for word in launch.command.exported:
        assert word.text.partition("=")[2].strip("'") in launch.command.source.slice(word.span)


def test_an_exported_variable_that_is_not_known_is_not_guessed(tmp_path: Path) -> None:
    (launch,) = found(f"export CUDA_VISIBLE_DEVICES=$(pick)\n{LAUNCH}")
    (word,) = launch.command.exported
    assert not word.known
    variable = read_launch(launch.command, Surroundings(tmp_path)).variable("CUDA_VISIBLE_DEVICES")
    assert variable is not None
    assert not variable.known


def test_words_stand_where_they_are_written() -> None:
    text = (
        'GPUS=8\nOPTS="--lr 1e-4 --gpus $GPUS"\nARGS=(--a "b c")\n'
        'torchrun --nproc_per_node $GPUS t.py $OPTS "${ARGS[@]}" --out=x/$GPUS\n'
    )
    (launch,) = found(text)
    places = [launch.command.source.slice(word.span) for word in launch.command.words]
    assert places == [
        "torchrun", "--nproc_per_node", "$GPUS", "t.py",
        "--lr", "1e-4", "--gpus", "$GPUS",
        "--a", "b c",
        "--out=x/$GPUS",
    ]  # fmt: skip
    lines_of = [launch.command.source.position(w.span.start).line for w in launch.command.words]
    assert lines_of == [4, 4, 4, 4, 2, 2, 2, 2, 3, 3, 4]


def test_words_of_a_command_in_a_variable_stand_in_its_value() -> None:
    text = 'L="torchrun --nproc_per_node 8"\nCMD="$L t.py --x"\nsrun bash -c "$CMD"\n'
    (launch,) = found(text)
    source = launch.command.source
    assert [(w.text, source.position(w.span.start)) for w in launch.command.words] == [
        ("srun", (3, 1)),
        ("torchrun", (1, 4)),
        ("--nproc_per_node", (1, 13)),
        ("8", (1, 30)),
        ("t.py", (2, 9)),
        ("--x", (2, 14)),
    ]


def test_exported_variables_reach_the_launchers_that_read_them(tmp_path: Path) -> None:
    text = "export FORCE_TORCHRUN=1\nexport NNODES=2 NPROC_PER_NODE=$((2 * 4))\n"
    (launch,) = found(text + "llamafactory-cli train a.yaml\n")
    context = read_launch(launch.command, Surroundings(tmp_path))
    assert getattr(context.world_size, "value", None) == 16


def test_an_option_behind_hidden_words_counts_and_one_before_does_not(tmp_path: Path) -> None:
    text = 'LATE="--nproc_per_node 4 --nnodes 2"\ntorchrun {} t.py\n'
    surroundings = Surroundings(tmp_path)
    (behind,) = found(text.format("$MORE $LATE"))
    (before,) = found(text.format("$LATE $MORE --max-restarts 1"))
    assert getattr(read_launch(behind.command, surroundings).world_size, "value", None) == 8
    assert not hasattr(read_launch(before.command, surroundings).world_size, "value")


PIECES = (
    "deepspeed ", "torchrun ", "python t.py --deepspeed ", "srun ", "bash -c ", "eval ", "t.py ",
    "--nnodes ", "$A", "${A:-", "${A[@]}", "${#A", "$((", "))", "$(", ")", "`", "'", "\"", "\\",
    "\n", "; ", "&& ", "| ", "& ", "A=", "A+=(", "B=$A$A ", "export ", "local ", "if ", "then ",
    "else ", "fi\n", "for x in ", "do ", "done\n", "while ", "case ", "in ", "esac\n", ";; ",
    "f() { ", "} ", "f ", "return\n", "cat <<X\n", "X\n", "<<< ", "> ", "#", " ", "\t", "[[ ",
    "]] ", "*", "~", "{", "}", "=", "\x00", "\r\n", "#SBATCH --nodes=2\n", "é", "```bash\n",
    "```\n", "$(A) ", "A := 1\n", "bash <<X\n", "sbatch <<-'X'\n#!/bin/sh\n", "sbatch --wrap ",
    "ssh -p 2 h ", "tmux new -s ", "read -d '' A <<X\n", "jsrun ", "\tX\n",
)  # fmt: skip
NAMES = st.sampled_from(["run.sh", "job.sbatch", "Makefile", "README.md"])


def check(source: Source, folder: Path) -> None:
    for launch in find_launches(source).launches:
        for word in (*launch.command.words, *launch.command.exported):
            assert 0 <= word.span.start <= word.span.end <= len(source.text)
        for directive in launch.directives:
            assert directive.location.source is source
        assert launch.command.line
        context = read_launch(launch.command, Surroundings(folder))
        for argument in (*context.arguments, *context.launcher_arguments, *context.environment):
            for place in (argument.location, argument.value_location):
                assert place.span.start <= place.span.end


@settings(max_examples=500,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(NAMES, st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_shell_like_text_is_read(tmp_path: Path, name: str, text: str) -> None:
    check(Source(name, text), tmp_path)


@settings(max_examples=300,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(NAMES, st.binary(max_size=200))
def test_any_bytes_are_read(tmp_path: Path, name: str, data: bytes) -> None:
    check(Source(name, data.decode("utf-8", errors="replace")), tmp_path)


@settings(max_examples=300,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.sampled_from(SCRIPTS), st.data())
def test_a_script_with_a_hole_is_read(tmp_path: Path, script: Path, data: st.DataObject) -> None:
    source = source_of(script)
    start = data.draw(st.integers(0, len(source.text)))
    end = data.draw(st.integers(start, min(start + 12, len(source.text))))
    check(Source(source.name, source.text[:start] + source.text[end:]), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "A=xx\n" + "A=$A$A\n" * 60 + "torchrun $A t.py\n",
        "A=(x)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 60 + 'torchrun "${A[@]}" t.py\n',
        "f0() { torchrun t.py; }\n"
        + "".join(f"f{i + 1}() {{ f{i} 1; f{i} 2; }}\n" for i in range(30))
        + "f30\n",
        "f() { f; f; }\nf\n",
        "for x in 1; do " * 30 + "torchrun t.py; " + "done; " * 30,
        "if x; then " * 39 + "torchrun t.py; " + "fi; " * 39,
        "(" * 5000,
        "$((" * 5000,
        "${a:-" * 5000,
        '"$(' * 5000,
        "A=1 " * 20000 + "torchrun t.py",
        "torchrun t.py " + "x " * 50000,
        "eval '" * 500,
        'A="eval \\"\\$A\\""; eval "$A"\n',
        "".join(f"v{i}=1\n" for i in range(3000)) + "if x; then torchrun t.py; fi\n" * 3000,
        "cat <<X\n" * 3000,
        "f() {\ncat <<X\n" + "$a " * 100_000 + "\nX\n}\n" + "f\n" * 5000 + "torchrun t.py\n",
        "for x in $(" * 30 + "torchrun t.py" + "); do :; done" * 30,
        "bash <<X\n" * 30 + "torchrun t.py\n" + "X\n" * 30,
        "A=$(torchrun t.py); " * 3000,
        "case x in " * 3000,
        "torchrun {" + "," * 200_000,
        "torchrun " + "ds_" * 60_000,
        "((" + "a" * 200_000 + "))",
        "torchrun " + "$a" * 100_000,
        f"A={'x' * 60_000}\n" + "torchrun $A\n" * 5000,
        f"A={'x ' * 30_000}\n" + "torchrun " + "$A" * 5000,
        "x" * 500_000,
        "'\"" * 200_000,
    ],
    ids=range(29),
)
def test_texts_made_to_take_forever_end(text: str, tmp_path: Path) -> None:
    check(Source("run.sh", text), tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", "```" + "a" * 200_000 + "`\n"),
        ("README.md", "```bash\n" + "$ torchrun t.py\n" * 5000 + "```\n"),
        ("README.md", "```bash\n```\n" * 20_000),
        ("Makefile", "".join(f"A{i} = $(A{i + 1})$(A{i + 1})\n" for i in range(30))
         + "all:\n\ttorchrun $(A0) t.py\n"),
        ("Makefile", "A = $(A)\nall:\n\ttorchrun $(A) t.py\n"),
        ("Makefile", "all:\n" + "\ttorchrun $(shell (( t.py\n" * 3000),
        ("Makefile", "\\\n" * 100_000),
    ],
    ids=range(7),
)  # fmt: skip
def test_other_files_made_to_take_forever_end(name: str, text: str, tmp_path: Path) -> None:
    check(Source(name, text), tmp_path)


def test_nothing_in_a_script_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    planted = tmp_path / "planted"
    touch = f"touch {planted}"
    text = (
        f"#!/bin/bash\n{touch}\nX=$({touch})\nY=`{touch}`\n: <({touch})\neval '{touch}'\n"
        f'bash -c "{touch}"\nbash <<X\n{touch}\nX\nssh here {touch}\n'
        f'source /dev/stdin <<< "{touch}"\necho x > {planted}\n'
        f"deepspeed --num_gpus $({touch}; echo 2) t.py --deepspeed $(({touch}))\n"
    )
    makefile = f"X := $(shell {touch})\nY != {touch}\nall:\n\t{touch}\n\ttorchrun $(X) t.py\n"
    assert found(text)
    assert found(makefile, "Makefile")
    assert found(f"```bash\n{text}```\n", "README.md")
    for launch in (*found(text), *found(makefile, "Makefile")):
        read_launch(launch.command, Surroundings(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("directives", "variable", "value"),
    [
        ("#PBS -l nodes=2:ppn=4", "PBS_NP", "8"),
        ("#PBS -l walltime=1:00:00,nodes=3:gpus=2:ppn=2", "PBS_NP", "6"),
        ("#PBS -l nodes=2", "PBS_NUM_PPN", "1"),
        ("#PBS -l nodes=2:ppn=4+1:ppn=2", "PBS_NP", None),
        ("#PBS -l nodes=node7:ppn=4", "PBS_NP", None),
        ("#PBS -l select=2:mpiprocs=4", "PBS_NP", None),
        ("#PBS -N x\necho\n#PBS -l nodes=2", "PBS_NP", None),
        ("#BSUB -n 12 -q gpu", "LSB_DJOB_NUMPROC", "12"),
        ("#BSUB -n 4,8", "LSB_DJOB_NUMPROC", None),
        ("#BSUB -gpu num=4", "LSB_DJOB_NUMPROC", None),
        ("# PBS -l nodes=2", "PBS_NP", None),
    ],
)
def test_counts_of_torque_and_lsf(directives: str, variable: str, value: str | None) -> None:
    (launch,) = found(f"#!/bin/bash\n{directives}\ntorchrun --nnodes ${variable} t.py\n")
    word = launch.command.words[2]
    assert (word.text if word.known else None) == value
