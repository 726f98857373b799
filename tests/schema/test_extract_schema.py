"""The tool that compares DeepSpeed's source with the schema."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import pytest

from dsguard.schema.history import NEWEST_KNOWN
from tests.conftest import ROOT


def installed() -> str | None:
    try:
        return version("deepspeed").partition("+")[0]
    except PackageNotFoundError:
        return None


pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(
        installed() != str(NEWEST_KNOWN), reason=f"DeepSpeed {NEWEST_KNOWN} is not installed"
    ),
]


def extract(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "extract_schema.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_installed_release_is_what_the_schema_says() -> None:
    done = extract()
    assert (done.returncode, done.stdout) == (0, f"DeepSpeed {NEWEST_KNOWN}: no differences\n"), (
        done.stderr
    )


CONFIG, ZERO = "deepspeed/runtime/config.py", "deepspeed/runtime/zero/config.py"
CHANGES = (
    (
        CONFIG,
        "_state = get_dump_state(param_dict)",
        "hue = param_dict.get('colour', {}).get('hue')",
    ),
    ("deepspeed/runtime/constants.py", "CLIPPING_DEFAULT = 1.0", "CLIPPING_DEFAULT = 2.0"),
    (ZERO, "reduce_scatter: bool = True", "reduce_scatter: bool = False\n    shade: int = 1"),
    (ZERO, "sub_group_size: int = Field(pp_int(1e9), ge=0)", "sub_group_size: int = 10**9"),
    (ZERO, "round_robin_gradients: bool", "round_robin_gradients: int"),
    (ZERO, 'alias="stage3_max_reuse_distance"', 'alias="stage3_reuse_distance"'),
    ("deepspeed/compile/config.py", '"autosp", "autotp"]', '"autosp", "autoxp"]'),
    (CONFIG, "_REMOVED_ZERO_CONFIG_KEYS = {", "_REMOVED_ZERO_CONFIG_KEYS = {'old': '',"),
    ("deepspeed/runtime/config_utils.py", 'extra="forbid"', 'extra="ignore"'),
)


def sdist(folder: Path, changes: tuple[tuple[str, str, str], ...]) -> Path:
    """The installed package as an archive, with some of its text replaced."""
    source = Path(str(distribution("deepspeed").locate_file("")))
    texts = {
        path.relative_to(source).as_posix(): path.read_text("utf-8")
        for path in source.glob("deepspeed/**/*.py")
    }
    texts["version.txt"] = "0.20.0\n"
    for path, old, new in changes:
        assert texts[path].count(old) == 1, (path, old)
        texts[path] = texts[path].replace(old, new)
    archive = folder / "deepspeed-0.20.0.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as made:
        for path, text in texts.items():
            entry = tarfile.TarInfo(f"deepspeed-0.20.0/{path}")
            entry.size = len(text.encode())
            made.addfile(entry, io.BytesIO(text.encode()))
    return archive


def test_whatever_a_new_release_changes_is_reported(tmp_path: Path) -> None:
    archive = sdist(tmp_path, CHANGES)
    done = extract(str(archive), "--json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["version"] == "0.20.0"
    found = {(row["key"], row["what"]): row["deepspeed"] for row in report["differences"]}
    strict = {key for key in found if key[1] == "refusal of unknown keys"}
    assert len(strict) > 15
    assert {key: value for key, value in found.items() if key not in strict} == {
        ("colour", "new"): None,
        ("colour.hue", "new"): None,
        ("dump_state", "gone"): None,
        ("gradient_clipping", "default"): 2.0,
        ("zero_optimization.reduce_scatter", "default"): False,
        ("zero_optimization.shade", "new"): None,
        ("zero_optimization.sub_group_size", "limits"): [],
        ("zero_optimization.round_robin_gradients", "type"): ["whole"],
        ("zero_optimization.stage3_reuse_distance", "new"): None,
        ("zero_optimization.stage3_max_reuse_distance", "gone"): None,
        ("compile.passes", "choices"): ["z1", "z3", "autosp", "autoxp"],
        ("zero_optimization.old", "refused"): True,
    }
