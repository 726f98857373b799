"""What is asked for outside the config, and who asked."""

from __future__ import annotations

import pytest

from dsguard.frontends.requests import Requests
from dsguard.launch.context import Command
from dsguard.launch.read import Surroundings, read_launch
from dsguard.model.fact import OriginKind
from dsguard.model.finding import Confidence
from dsguard.model.source import Source
from dsguard.script.read import read_script
from tests.conftest import ROOT

STEPS = "gradient_accumulation_steps"
MICRO = "train_micro_batch_size_per_gpu"

ARGPARSE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=6)
parser.add_argument("--gradient_accumulation_steps", type=int, default=8)
args = parser.parse_args()
"""

TRAINER = """
from transformers import HfArgumentParser, TrainingArguments
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
"""

IN_CODE = """
from transformers import Trainer, TrainingArguments
args = TrainingArguments(per_device_train_batch_size=3, fp16=True)
"""


def requests(flags: str, script: str | None = None) -> Requests:
    launch = read_launch(Command.of_text(f"torchrun train.py {flags}"), Surroundings(ROOT))
    read = read_script(Source("train.py", script)) if script is not None else None
    return Requests(launch, read)


@pytest.mark.parametrize(
    ("flags", "value", "confidence"),
    [
        ("--gradient_accumulation_steps 8", 8, Confidence.HIGH),
        ("--gradient-accumulation-steps=8", 8, Confidence.HIGH),
        ("--grad_accum 4", 4, Confidence.MEDIUM),
        ("--trainer.gradient_accumulation_steps 2", 2, Confidence.MEDIUM),
        ("--gradient_accumulation_steps 8 --gradient_accumulation_steps 2", 2, Confidence.HIGH),
    ],
)
def test_names_for_accumulation(flags: str, value: int, confidence: Confidence) -> None:
    request = requests(flags).get(STEPS)
    assert request is not None
    assert (request.value, request.confidence, request.explicit) == (value, confidence, True)


@pytest.mark.parametrize(
    "flags", ["", "--gradient_accumulation_steps", "--gradient_accumulation_steps eight"]
)
def test_what_is_no_answer(flags: str) -> None:
    assert requests(flags).get(STEPS) is None


def test_a_variable_is_no_answer() -> None:
    words = Command.of_text("torchrun train.py --gradient_accumulation_steps $STEPS")
    assert Requests(read_launch(words, Surroundings(ROOT))).get(STEPS) is None


def test_the_scripts_default_counts_where_the_flag_is_absent() -> None:
    request = requests("", ARGPARSE).get(MICRO)
    assert request is not None
    assert (request.value, request.explicit) == (6, False)
    assert request.flag == "the default of --batch_size"
    assert request.origin.kind is OriginKind.SCRIPT
    assert request.origin.describe() == "train.py:4:1"


def test_the_flag_beats_the_scripts_default() -> None:
    request = requests("--batch_size 2", ARGPARSE).get(MICRO)
    assert request is not None
    assert (request.value, request.explicit) == (2, True)


def test_an_abbreviation_is_what_argparse_takes_it_for() -> None:
    request = requests("--gradient_acc 3", ARGPARSE).get(STEPS)
    assert request is not None
    assert request.value == 3


def test_a_hidden_argument_hides_the_default() -> None:
    """``$ARGS`` may hold the flag."""
    assert requests("$ARGS", ARGPARSE).get(MICRO) is None


def test_a_script_that_stores_to_the_argument_has_the_last_word() -> None:
    script = ARGPARSE + "args.gradient_accumulation_steps = 2\n"
    assert requests("", script).get(STEPS) is None
    request = requests("--gradient_accumulation_steps 4", script).get(STEPS)
    assert request is not None
    assert request.confidence is Confidence.MEDIUM


def test_the_frameworks_default_comes_last() -> None:
    request = requests("", TRAINER).get(MICRO)
    assert request is not None
    assert (request.value, request.explicit) == (8, False)
    assert request.origin.kind is OriginKind.DEFAULT


def test_what_is_passed_in_code_is_asked_for() -> None:
    asked = requests("", IN_CODE)
    request = asked.get(MICRO)
    assert request is not None
    assert (request.value, request.explicit) == (3, True)
    switch = asked.switch("fp16")
    assert switch is not None
    assert switch.flag == "TrainingArguments(fp16)"


def test_what_is_passed_in_code_needs_no_launch() -> None:
    asked = Requests(None, read_script(Source("train.py", IN_CODE)))
    request = asked.get(MICRO)
    assert request is not None
    assert (request.value, request.origin.describe()) == (3, "train.py:3:54")
    assert asked.switch("fp16") is not None


PASSED_ON = """
import argparse
from transformers import TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--samples", type=int, default=4)
parser.add_argument("--batch_size", type=int, default=64)
args = parser.parse_args()
TrainingArguments(per_device_train_batch_size=args.samples, gradient_accumulation_steps=count())
"""


def test_an_argument_that_is_passed_on_counts_and_no_other() -> None:
    for flags, value in (("", 4), ("--samples 2", 2), ("--samples 2 --batch_size 8", 2)):
        request = requests(flags, PASSED_ON).get(MICRO)
        assert request is not None
        assert request.value == value
    assert requests("--gradient_accumulation_steps 8", PASSED_ON).get(STEPS) is None


LOOP = """
import argparse
from accelerate import Accelerator
from accelerate.utils import GradientAccumulationPlugin
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2)
args = parser.parse_args()
accelerator = Accelerator({})
"""


@pytest.mark.parametrize(
    ("passed", "options", "value", "flag"),
    [
        ("gradient_accumulation_steps=4", "", 4, "Accelerator(gradient_accumulation_steps)"),
        ("gradient_accumulation_steps=args.steps", "", 2, "the default of --steps"),
        ("gradient_accumulation_steps=args.steps", "--steps 8", 8, "--steps"),
        ("gradient_accumulation_steps=2 * args.steps", "", None, ""),
        ("gradient_accumulation_steps=len(x)", "--gradient_accumulation_steps 4", None, ""),
        ("**more", "", None, ""),
        (
            "gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=6)",
            "",
            6,
            "GradientAccumulationPlugin(num_steps)",
        ),
        ("cpu=True", "", 1, "the default of Accelerator(gradient_accumulation_steps)"),
    ],
)
def test_what_accelerator_is_handed(
    passed: str, options: str, value: int | None, flag: str
) -> None:
    request = requests(options, LOOP.format(passed)).handed(STEPS)
    assert (request and (request.value, request.flag)) == (value and (value, flag))


def test_an_option_of_accelerate_launch_overrules_accelerator() -> None:
    for passed, value in (
        ("gradient_accumulation_steps=4", 3),
        ("gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=6)", 6),
    ):
        command = "accelerate launch --use_deepspeed --gradient_accumulation_steps 3 train.py"
        launch = read_launch(Command.of_text(command), Surroundings(ROOT))
        script = read_script(Source("train.py", LOOP.format(passed)))
        request = Requests(launch, script).handed(STEPS)
        assert request is not None
        assert request.value == value


def test_a_script_that_makes_two_says_nothing() -> None:
    one = LOOP.format("gradient_accumulation_steps=4")
    assert requests("", one + "other = Accelerator()\n").handed(STEPS) is None
    stored = one + "accelerator.gradient_accumulation_steps = 2\n"
    assert requests("", stored).handed(STEPS) is None


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ("Accelerator(mixed_precision='fp16')", "fp16"),
        ("Accelerator()", None),
        ("pytorch_lightning.Trainer(precision=16)", "fp16"),
        ("pytorch_lightning.Trainer(precision='bf16-true')", "bf16"),
        ("transformers.Trainer(precision=16)", None),
    ],
)
def test_the_precision_that_is_handed_over(call: str, word: str | None) -> None:
    script = f"import pytorch_lightning, transformers\nfrom accelerate import Accelerator\n{call}\n"
    request = requests("", script).precision()
    assert (request and request.value) == word


@pytest.mark.parametrize(
    ("flags", "value"), [("--bf16", True), ("--bf16 true", True), ("--bf16 False", False)]
)
def test_switches(flags: str, value: bool) -> None:
    request = requests(flags).on_or_off("bf16")
    assert request is not None
    assert request.value is value


def test_trls_bf16_gives_way_to_fp16() -> None:
    script = "from trl import SFTConfig, TrlParser\nTrlParser(SFTConfig).parse_args_and_config()\n"
    assert requests("--fp16", script).on_or_off("bf16") is None
    default = requests("", script).on_or_off("bf16")
    assert default is None or default.value is True


@pytest.mark.parametrize(
    ("flags", "script", "open"),
    [
        ("--batch_size $BATCH", ARGPARSE, True),
        ("--batch_size $BATCH", None, True),
        ("$ARGS", ARGPARSE, True),
        ("$ARGS", None, False),
        ("--batch_size 4 --out $DIR", ARGPARSE, False),
        ("--out x", ARGPARSE, False),
    ],
)
def test_a_number_that_only_the_run_decides(flags: str, script: str | None, open: bool) -> None:
    assert (requests(flags, script).undecided_key(MICRO) is not None) == open
