"""What a run imports: dsguard speaks about torch and DeepSpeed and never loads them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    program = (
        "import sys; sys.argv = ['dsguard', 'check', 'ds_config.json', '-q']\n"
        "from dsguard.cli.app import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*(name for name in sys.modules if name.startswith('dsguard.')))"
    )
    loaded = set(run(program, STORY).splitlines()[-1].split())
    commands = {name for name in loaded if name.startswith("dsguard.cli.commands.")}
    assert commands == {"dsguard.cli.commands.check"}
    for other in ("runtime", "records", "server", "upgrading", "integrations", "comparing"):
        assert f"dsguard.{other}" not in loaded


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
    program = (
        f"import sys; sys.argv = ['dsguard', *{arguments!r}]\n"
        "from dsguard.cli.app import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*(name for name in sys.modules if name.startswith('dsguard.rules.')))"
    )
    families: dict[str, set[str]] = {}
    for name in run(program, STORY).splitlines()[-1].split():
        _, _, family, *module = name.split(".")
        if module:
            families.setdefault(family, set()).update(module)
    return families


def test_the_version_imports_no_command() -> None:
    program = (
        "import sys; sys.argv = ['dsguard', '--version']\n"
        "from dsguard.cli.app import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*(name for name in sys.modules if name.startswith('dsguard.cli.commands.')))"
    )
    assert run(program, STORY).splitlines()[-1] == ""


def test_importing_the_package_loads_nothing_of_it() -> None:
    program = (
        "import sys, dsguard; dsguard.__version__; dir(dsguard); "
        "print([n for n in sys.modules if n.startswith('dsguard.') or n == 'pydantic'])"
    )
    assert run(program, STORY).strip() == "[]"


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, check=True
    )
    return done.stdout
