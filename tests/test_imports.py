"""What a run imports: dsguard speaks about torch and DeepSpeed and never loads them."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dsguard
from tests.conftest import FIXTURES

HEAVY = ("torch", "deepspeed", "transformers", "accelerate", "lightning", "hjson", "numpy")

PROGRAM = """
import sys
sys.argv = ["dsguard", *{arguments!r}]
try:
    from dsguard.cli.app import main
    main()
except SystemExit:
    pass
print("LOADED", *sorted(name for name in {heavy!r} if name in sys.modules))
"""

SOURCE = Path(dsguard.__file__).parent
STORY = FIXTURES / "runs" / "accumulation-ignored"


@pytest.mark.parametrize("command", ["check", "facts"])
def test_no_heavy_package_is_imported(command: str) -> None:
    """They are installed in the environment of this test, so silence is not for want of them."""
    launch = (STORY / "launch.txt").read_text().split()
    arguments = [command, "ds_config.json", "--", *launch]
    output = run(PROGRAM.format(arguments=arguments, heavy=HEAVY), STORY)
    assert output.splitlines()[-1] == "LOADED"
    assert "accumulation" in output


def test_a_command_imports_no_other() -> None:
    """A cold start is most of what a check of one config takes."""
    loaded = loaded_by(["dsguard", "check", "ds_config.json", "-q"], STORY)
    commands = {name for name in loaded if name.startswith("dsguard.cli.commands.")}
    assert commands == {"dsguard.cli.commands.check"}
    for other in ("runtime", "records", "server", "upgrading", "integrations", "comparing"):
        assert f"dsguard.{other}" not in loaded


def test_a_plain_check_needs_few_packages(tmp_path: Path) -> None:
    """pydantic-core judges ZeRO and fp16; pydantic, Rich and the others are for other checks."""
    story = shutil.copytree(STORY, tmp_path / "story")
    words = ["dsguard", "check", "ds_config.json", "--", *LAUNCH]
    loaded = loaded_by(words, story)
    assert {"typer", "pydantic_core", "msgspec"} <= loaded
    others = {"pydantic", "rich", "pathspec", "tomllib", "tomli", "tempfile", "importlib.metadata"}
    assert not others & loaded


LAUNCH = (STORY / "launch.txt").read_text().split()
ALONE = {
    "facts": ("script_config", "what_if", "contract"),
    "frontends": ("accelerate", "lightning", "transformers"),
    "reading": ("comments", "directives", "yaml"),
    "script": ("lookup", "loop", "read", "script", "training_arguments"),
}
"""Modules that a config has no use for where nobody says how it is launched."""
NOT_OF_THE_STORY = {
    "frontends": ALONE["frontends"],
    "reading": ALONE["reading"],
    "script": (
        *("annotations", "click_options", "dataclass_fields", "decorators", "hf_arguments"),
        *("loop.built", "notebook", "typer_parameters"),
    ),
}
"""Modules for what does not occur in the story: other trainers, files and parsers."""


@pytest.mark.parametrize(
    ("launch", "readers", "unused"),
    [
        ([], set(), ALONE),
        (
            LAUNCH,
            {
                *("arguments", "call", "options", "prefixes", "read", "scan", "scan_argparse"),
                *("secrets", "jobs", "jobs.find", "launchers", "launchers.torchrun"),
            },
            NOT_OF_THE_STORY,
        ),
    ],
    ids=["config alone", "story"],
)
def test_a_check_imports_the_readers_of_what_occurs(
    launch: list[str], readers: set[str], unused: dict[str, tuple[str, ...]]
) -> None:
    """Readers of other launchers, trainers, formats and parsers stay on the disk."""
    words = ["dsguard", "check", "ds_config.json", "-q", *(["--", *launch] if launch else [])]
    loaded = loaded_by(words, STORY)
    always = {"context", "counts", "environ", "shell", "shell.kinds", "words"}
    prefix = "dsguard.launch."
    assert {n.removeprefix(prefix) for n in loaded if n.startswith(prefix)} == always | readers
    names = {f"dsguard.{package}.{name}" for package, modules in unused.items() for name in modules}
    assert not names & loaded
    for name in names:
        assert importlib.util.find_spec(name), name


def test_releases_are_looked_up_without_importing_much(tmp_path: Path) -> None:
    """The installed one stands in a file, and few projects pin one."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'fit'\n", encoding="utf-8")
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from dsguard.frontends.installed import installed\n"
        "from dsguard.frontends.pinned import pinned\n"
        "installed('deepspeed'), pinned('deepspeed', Path.cwd())\n"
        "print(*sys.modules)"
    )
    slow = {"importlib.metadata", "email", "packaging.requirements", "packaging.utils", "tomllib"}
    assert not slow & set(run(program, tmp_path).split())


def test_a_check_imports_no_rule_that_has_nothing_to_look_at() -> None:
    """The story has fp16, ZeRO-3 and offload, and a loop that no rule of these families is about;
    neither is there a scheduler, nor a trainer, nor trouble with the launch.
    """
    launch = (STORY / "launch.txt").read_text().split()
    assert rules_of("check", "ds_config.json", "--", *launch) == {
        "batch": {"_numbers", "accumulation_ignored", "loader_batch_differs"},
        "schema": {"_bug_facts", "known_bug"},
        "script": {
            "_loaders",
            "_loop",
            "data_loader_size_differs",
            "data_not_split",
            "engine_stepped_on_own_boundary",
            "loss_divided_by_hand",
            "ranks_counted_by_hand",
            "returns_mixed_up",
        },
    }


def test_a_check_of_a_config_alone_imports_few_rules() -> None:
    assert rules_of("check", "ds_config.json") == {
        "batch": {"world_size_unknown"},
        "schema": {"_bug_facts", "known_bug"},
    }


@pytest.mark.parametrize("command", ["rules", "explain DSG203"])
def test_what_is_said_of_the_rules_imports_none(command: str) -> None:
    assert rules_of(*command.split()) == {}


def rules_of(*arguments: str) -> dict[str, set[str]]:
    """The modules of rules that a command imports, by family."""
    loaded = loaded_by(["dsguard", *arguments], STORY)
    families: dict[str, set[str]] = {}
    for name in (name for name in loaded if name.startswith("dsguard.rules.")):
        _, _, family, *module = name.split(".")
        if module:
            families.setdefault(family, set()).update(module)
    return families


def test_the_version_imports_no_command() -> None:
    loaded = loaded_by(["dsguard", "--version"], STORY)
    assert "typer" in loaded
    assert not any(name.startswith("dsguard.cli.commands.") for name in loaded)


def test_importing_the_package_loads_nothing_of_it() -> None:
    program = (
        "import sys, dsguard; dsguard.__version__; dir(dsguard); "
        "print([n for n in sys.modules if n.startswith('dsguard.') or n == 'pydantic'])"
    )
    assert run(program, STORY).strip() == "[]"


STORY_CONFIG = json.loads((STORY / "ds_config.json").read_text("utf-8"))
BLOCKS = {
    path.stem
    for path in (SOURCE / "schema").glob("*.py")
    if re.search(r"^class \w+\((Unc|C)heckedBlock\)", path.read_text("utf-8"), re.MULTILINE)
} - {"config"}
"""The modules of the schema that declare blocks."""


@pytest.mark.parametrize(
    ("config", "blocks", "validates"),
    [
        ({"train_batch_size": 32, "gradient_accumulation_steps": 1}, set(), False),
        ({"optimizer": {"type": "AdamW"}, "steps_per_print": 5}, {"optimizer"}, False),
        ({"zero_optimization": {"stage": 2}}, {"zero", "zenflow"}, True),
        ({"bf16": {"enabled": True}}, {"precision"}, True),
        (
            STORY_CONFIG,
            {"precision", "zero", "zenflow"},
            True,
        ),
    ],
)
def test_a_config_imports_the_blocks_it_holds(
    config: dict[str, Any], blocks: set[str], validates: bool
) -> None:
    program = (
        "import sys; from packaging.version import Version\n"
        "from dsguard.schema.validate import validate\n"
        f"validate({config!r}, Version('0.19.8'))\n"
        "print(*sys.modules)"
    )
    loaded = set(run(program, STORY).split())
    names = {name.removeprefix("dsguard.schema.") for name in loaded}
    assert len(BLOCKS) > 20
    assert names & BLOCKS == blocks
    assert ("pydantic_core" in loaded) == validates
    assert "pydantic" not in loaded


def test_looking_a_key_up_imports_its_block_alone() -> None:
    program = (
        "import sys; from dsguard.schema.keys import find\n"
        "find('fp16.loss_scale'); print(*sys.modules)"
    )
    names = {name.removeprefix("dsguard.schema.") for name in run(program, STORY).split()}
    assert names & BLOCKS == {"precision"}


def loaded_by(words: list[str], folder: Path) -> set[str]:
    """The modules that a run of the program has imported."""
    program = (
        f"import sys; sys.argv = {words!r}\n"
        "from dsguard.cli.app import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*sys.modules)"
    )
    return set(run(program, folder).splitlines()[-1].split())


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, check=True
    )
    return done.stdout
