"""What is read of a script, and what is honestly not known."""

from __future__ import annotations

import pytest

from dsguard.model.source import Source
from dsguard.script.declaration import Constant, FromArgument, Takes, Unreadable
from dsguard.script.lookup import argument_value
from dsguard.script.read import read_script
from dsguard.script.script import ParserKind
from tests.script.reading import declaration, load, read, reason, value

HEAD = "import argparse\nparser = argparse.ArgumentParser()\n"
TAIL = "\nargs = parser.parse_args()\n"


def test_a_declaration_knows_its_place() -> None:
    script = read(
        "import argparse\nπ = '€'; p = argparse.ArgumentParser()\n"
        "name = 'ü'; p.add_argument('--größe', default='ß')\r\np.parse_args()"
    )
    location = declaration(script, "größe").location
    assert location.source is script.source
    assert script.source.slice(location.span) == "p.add_argument('--größe', default='ß')"
    assert script.source.position(location.span.start) == (3, 13)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_places_with_every_line_end(end: str, mark: str) -> None:
    text = mark + end.join(
        ["import argparse", "p = argparse.ArgumentParser()", "p.add_argument('-x')"]
    )
    script = read_script(Source("train.py", text))
    location = declaration(script, "x").location
    assert text[location.span.start : location.span.end] == "p.add_argument('-x')"


def test_imports_are_named_with_their_parents() -> None:
    script = read("""
        import os.path, torch.nn as nn
        from transformers import Trainer
        from trl.trainer.utils import *
        from . import config
        from .. import up
        from .data.sets import load
        def f():
            import deepspeed
        """)
    assert script.imports == {
        *("os", "os.path", "torch", "torch.nn", "transformers", "transformers.Trainer"),
        *("trl", "trl.trainer", "trl.trainer.utils", ".config", "..up"),
        *(".data", ".data.sets", ".data.sets.load", "deepspeed"),
    }


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("import fire\nfire.Fire(print)", ParserKind.FIRE),
        ("import tyro\nargs = tyro.cli(Args)", ParserKind.TYRO),
        ("from jsonargparse import CLI\nCLI(main)", ParserKind.JSONARGPARSE),
        ("from lightning.pytorch.cli import LightningCLI\nLightningCLI()", ParserKind.JSONARGPARSE),
        ("from absl import flags\nflags.DEFINE_integer('bs', 8, '')", ParserKind.ABSL),
        ("import hydra\n@hydra.main(config_path='c')\ndef main(cfg): ...", ParserKind.HYDRA),
        ("import configargparse as c\np = c.ArgParser()", ParserKind.CONFIGARGPARSE),
        ("import simple_parsing\nsimple_parsing.parse(A)", ParserKind.SIMPLE_PARSING),
        ("from tap import Tap\nclass A(Tap):\n    bs: int = 8", ParserKind.TAP),
        ("import torch", None),
        ("import fire", None),
        ("import argparse", None),
    ],
)
def test_parsers_that_are_only_named(text: str, kind: ParserKind | None) -> None:
    script = read(text)
    assert script.parser is kind
    assert script.arguments == ()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("if cond():\n    parser.add_argument('--x', default=1)", "only under a condition"),
        ("while more():\n    parser.add_argument('--x', default=1)", "in a loop"),
        ("try:\n    a()\nexcept E:\n    parser.add_argument('--x', default=1)", "after an error"),
        ("match a():\n    case 1:\n        parser.add_argument('--x', default=1)", "a condition"),
        ("parser.add_argument('--x', default=f())", "`f()` is only known"),
        ("parser.add_argument('--x', default=1, type=int)\n"
         "parser.add_argument('--x', default=2)", "--x is declared in more than one place"),
        ("parser.add_argument('--x', default='1', type=f)", "goes through type="),
        ("parser.add_argument('--x', **more)", "its options are computed"),
        ("parser.add_argument('--x', action=Own)", "its action is the script's own"),
        ("if cond():\n    parser.set_defaults(x=3)\nparser.add_argument('--x')", "set_defaults"),
        ("B = 1\nif cond():\n    B = 2\nparser.add_argument('--x', default=B)", "condition"),
        ("B = 1\nfor i in y:\n    B = i\nparser.add_argument('--x', default=B)", "only known"),
        ("B = 1\nfor B in y: pass\nparser.add_argument('--x', default=B)", "only known"),
        ("B = 1\nwith a() as B: pass\nparser.add_argument('--x', default=B)", "only known"),
        ("B = 1\ndef f():\n    global B\n    B = 2\n"
         "parser.add_argument('--x', default=B)", "functions of the script change B"),
        ("B = [1]\nB.append(2)\nparser.add_argument('--x', default=B)", "may change"),
        ("class C:\n    b = 1\nC.b = 2\nparser.add_argument('--x', default=C.b)", "more than one"),
        ("parser.add_argument('--x', default=[y for y in (1, 2)])", "only known"),
        ("parser.add_argument('--x', default=10 ** 10 ** 10)", "only known"),
        ("parser.add_argument('--x', default=1 // 0)", "only known"),
        ("parser.add_argument('--x', default=missing)", "missing is not defined"),
    ],
)  # fmt: skip
def test_what_only_a_run_could_tell_is_not_known(body: str, why: str) -> None:
    assert why in reason(read(HEAD + body + TAIL), "x")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if True:\n    parser.add_argument('--x', default=1)", 1),
        ("if __name__ == '__main__':\n    parser.add_argument('--x', default=1)", 1),
        ("B = 1\nif B is None:\n    B = 2\nparser.add_argument('--x', default=B)", 1),
        ("B = 1\nif a():\n    raise E\nparser.add_argument('--x', default=B)", 1),
        ("B = 1\nB += 2\nparser.add_argument('--x', default=B)", 3),
        ("B = None or 4\nparser.add_argument('--x', default=B)", 4),
        ("B, C = 1, 2\nparser.add_argument('--x', default=C)", 2),
        ("parser.set_defaults(x=3)\nparser.add_argument('--x')", 3),
        ("parser.set_defaults(x=3)\nparser.add_argument('--x', default=1)", 1),
        ("parser.add_argument('--x', default=1)\nparser.set_defaults(x='4')", "4"),
        ("parser.add_argument('--x', type=int)\nparser.set_defaults(x='4')", 4),
        ("def f(p, b=2):\n    p.add_argument('--x', default=b)\nf(parser)", 2),
        ("def f(p, *, b):\n    p.add_argument('--x', default=b)\nf(p=parser, b=5)", 5),
        ("def f(p):\n    return p\nf(parser).add_argument('--x', default=1)", 1),
        ("with a():\n    parser.add_argument('--x', default=1)", 1),
        ("parser.add_argument('--x', default=float('inf'))", float("inf")),
        ("parser.add_argument('--x', action='store_true', default=None)", None),
    ],
)
def test_what_the_text_fixes_is_known(body: str, expected: object) -> None:
    assert value(read(HEAD + body + TAIL), "x") == expected


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("for n in y:\n    parser.add_argument('--' + n)", "the name of an argument is computed"),
        ("parser.add_argument(*names)", "the name of an argument is computed"),
        ("from lib import more\nmore(parser)", "more gets the parser and is not read"),
        ("parser = lib.more(parser)\nparser.add_argument('--y')", "gets the parser"),
        ("parser.add_subparsers()", "subcommands"),
        ("parser.set_defaults(**y)", "set_defaults takes its values from elsewhere"),
        ("parser.add_arguments(Config, 'c')", "add_arguments may declare"),
    ],
)
def test_gaps_are_told(body: str, why: str) -> None:
    script = read(HEAD + body + TAIL)
    assert any(why in gap.reason for gap in script.gaps), script.gaps
    assert script.parser is ParserKind.ARGPARSE


@pytest.mark.parametrize(
    "body",
    [
        "print(parser)",
        "import argcomplete\nargcomplete.autocomplete(parser)",
        "parser.print_help()",
        "def f(p): return p\nf(parser)",
        "def recursive(p):\n    recursive(1)\nrecursive(1)",
    ],
)
def test_no_gap_where_nothing_is_hidden(body: str) -> None:
    assert read(HEAD + body + TAIL).gaps == ()


def test_a_function_that_is_handed_over_is_read_where_nothing_else_parses() -> None:
    script = read("""
        import argparse, torch.multiprocessing as mp
        def worker(rank):
            parser = argparse.ArgumentParser()
            parser.add_argument("--x", default=1)
            args = parser.parse_args()
        mp.spawn(worker)
        """)
    assert value(script, "x") == 1


def test_a_function_that_nothing_calls_does_not_count_beside_one_that_is_called() -> None:
    script = read("""
        import argparse
        def old():
            parser = argparse.ArgumentParser()
            parser.add_argument("--x", default=1)
            return parser.parse_args()
        def new():
            parser = argparse.ArgumentParser()
            parser.add_argument("--x", default=2)
            return parser.parse_args()
        new()
        """)
    assert [d.default for d in script.arguments] == [Constant(2)]


def test_declarations_after_a_conditional_return_are_in_doubt() -> None:
    script = read("""
        import argparse
        def get(p):
            p.add_argument("--x", default=1)
            if simple:
                return p
            p.add_argument("--y", default=1)
            return p
        get(argparse.ArgumentParser()).parse_args()
        """)
    assert value(script, "x") == 1
    assert "condition" in reason(script, "y")


def test_two_parsers_that_disagree() -> None:
    script = read("""
        import argparse
        a = argparse.ArgumentParser()
        a.add_argument("--x", default=1)
        a.add_argument("--y", default=1)
        b = argparse.ArgumentParser()
        b.add_argument("--x", default=2)
        b.add_argument("--y", default=1)
        a.parse_known_args()
        b.parse_known_args()
        """)
    assert "two parsers" in reason(script, "x")
    assert value(script, "y") == 1


def test_words_of_its_own_are_no_command_line() -> None:
    script = read(HEAD + "parser.add_argument('--x', default=1)\nparser.parse_args(['--x', '3'])")
    assert script.parser is ParserKind.ARGPARSE
    assert script.arguments == ()
    assert [g.reason for g in script.gaps] == ["the parser is given its own words to parse"]


def test_the_later_declaration_wins_where_the_parser_resolves() -> None:
    script = read("""
        import argparse
        p = argparse.ArgumentParser(conflict_handler="resolve")
        p.add_argument("--x", "-x", default=1)
        p.add_argument("--x", default=2, dest="z")
        p.add_argument("-x", default=3, dest="w")
        p.parse_args()
        """)
    assert [(d.name, d.flags) for d in script.arguments] == [("z", ("--x",)), ("w", ("-x",))]


def test_a_parser_class_of_the_script() -> None:
    script = read("""
        import argparse
        class Mine(argparse.ArgumentParser):
            def __init__(self):
                super().__init__()
                self.add_argument("--x", default=1)
            def add_more(self):
                self.add_argument("--y", default=2)
        p = Mine()
        p.add_more()
        p.parse_args()
        """)
    assert value(script, "x") == 1
    assert value(script, "y") == 2


def test_stored_attributes_are_noted() -> None:
    script = read(
        HEAD + "parser.add_argument('--lr')" + TAIL + "args.lr *= 2\nsetattr(args, 'bs', 1)"
    )
    assert set(script.reassigned) == {"lr", "bs"}
    assert script.source.slice(script.reassigned["lr"].span) == "args.lr"


def test_self_is_noted_only_in_dataclasses_of_the_parser() -> None:
    script = load("causal_lm.py")
    assert set(script.reassigned) == {"model_revision", "remove_unused_columns"}


def test_training_arguments_built_in_code() -> None:
    (call,) = load("script_arguments.py").training_arguments
    assert (call.class_name, call.framework, call.complete) == (
        "TrainingArguments",
        "TrainingArguments",
        True,
    )
    assert call.keywords["per_device_train_batch_size"] == FromArgument("batch_size")
    assert call.keywords["max_steps"] == Constant(1000)
    assert call.keywords["warmup_ratio"] == Constant(0.03)
    assert isinstance(call.keywords["bf16"], Unreadable)


def test_training_arguments_in_a_function_that_gets_the_arguments() -> None:
    script = read("""
        import argparse
        from trl import SFTConfig as Config
        def train(args):
            return Config(learning_rate=args.lr, bf16=True)
        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--lr", type=float, default=1e-5)
            train(parser.parse_args())
        main()
        """)
    calls = {c.keywords["learning_rate"] for c in script.training_arguments}
    assert calls == {FromArgument("lr")}
    assert {c.framework for c in script.training_arguments} == {"SFTConfig"}


def test_trl() -> None:
    script = load("trl_sft.py")
    assert script.parser is ParserKind.HF
    assert script.framework == "SFTConfig"
    assert script.config_flag == "--config"
    assert [g.reason for g in script.gaps] == [
        "the fields of trl.ScriptArguments are not read",
        "the fields of trl.ModelConfig are not read",
    ]


def test_a_base_class_that_is_not_read_is_a_gap() -> None:
    script = read("""
        from dataclasses import dataclass
        from transformers import HfArgumentParser
        from mine import Base
        @dataclass
        class A(Base):
            x: int = 1
        HfArgumentParser(A).parse_args_into_dataclasses()
        """)
    assert value(script, "x") == 1
    assert [g.reason for g in script.gaps] == ["the fields of mine.Base are not read"]


def test_dataclasses_of_a_module_beside_the_script() -> None:
    script = read(
        """
        from transformers import HfArgumentParser
        from arguments import *
        HfArgumentParser((ModelArguments, TrainArguments)).parse_args_into_dataclasses()
        """,
        arguments="""
        from dataclasses import dataclass
        from transformers import TrainingArguments
        @dataclass
        class ModelArguments:
            name: str = "m"
        @dataclass
        class TrainArguments(TrainingArguments):
            learning_rate: float = 1e-4
        """,
    )
    assert value(script, "learning_rate") == 1e-4
    assert script.framework == "TrainingArguments"
    assert declaration(script, "name").location.source.name == "arguments.py"


def test_modules_are_followed_to_depth_two() -> None:
    script = read(
        "from a import get\nget().parse_args()",
        a="from b import get",
        b="from c import DEPTH\nimport argparse\ndef get():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--x', default=DEPTH)\n    return p",
        c="DEPTH = 3",
    )
    assert "c.DEPTH" not in reason(script, "x")
    assert "DEPTH" in reason(script, "x")


def test_packages_and_relative_imports() -> None:
    script = read(
        "import pkg.options\npkg.options.get().parse_args()",
        pkg__options="""
        import argparse
        from .numbers import BATCH
        def get():
            p = argparse.ArgumentParser()
            p.add_argument("--x", default=BATCH)
            return p
        """,
        pkg__numbers="BATCH = 9",
    )
    assert value(script, "x") == 9


def test_modules_that_import_each_other() -> None:
    script = read(
        "import a\na.parser.parse_args()",
        a="import b\nimport argparse\nparser = argparse.ArgumentParser()",
        b="import a",
    )
    assert script.parser is ParserKind.ARGPARSE


def test_a_module_that_is_no_python_is_a_library() -> None:
    script = read("from a import add\n" + HEAD + "add(parser)" + TAIL, a="def (")
    assert [g.reason for g in script.gaps] == ["add gets the parser and is not read"]


def test_subcommands_are_left_alone() -> None:
    script = load("subcommands.py")
    assert [d.name for d in script.arguments] == ["seed"]
    assert argument_value(script, "batch_size") is None
    assert [g.reason for g in script.gaps] == ["the script has subcommands"]


def test_fire_is_named() -> None:
    script = load("fire_app.py")
    assert (script.parser, script.arguments) == (ParserKind.FIRE, ())


def test_a_switch_of_the_parser_default_is_one() -> None:
    script = read(HEAD + "parser.add_argument('--x', action='store_const', const=4)" + TAIL)
    found = declaration(script, "x")
    assert found.is_switch
    assert found.takes is Takes.NOTHING
    assert found.standing_alone("--x") == Constant(4)
