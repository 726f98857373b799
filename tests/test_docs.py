"""The pages of the documentation: their commands are run, their files are read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.conftest import PATH, ROOT, UPDATE
from tests.docs import FENCE, Shell, replay
from tests.test_action import ACTION
from tests.test_pre_commit import HOOKS

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name != "api.md")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the commands are for bash")


def compare(page: Path, actual: str) -> None:
    if UPDATE:
        page.write_text(actual, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == actual


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    compare(page, replay(page.read_text(encoding="utf-8"), Shell(tmp_path)))


@pytest.mark.network
@pytest.mark.skipif(shutil.which("pre-commit", path=PATH) is None, reason="needs pre-commit")
def test_the_first_ten_minutes_with_the_hook_of_this_checkout(tmp_path: Path) -> None:
    """The address and the tag that the page names lead to this checkout."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    page = DOCS / "first-ten-minutes.md"
    text = page.read_text(encoding="utf-8")
    (tag,) = re.findall(r"^    rev: (\S+)$", text, re.MULTILINE)
    folder, published = tmp_path / "run", tmp_path / "published"
    folder.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(published)], check=True)
    subprocess.run(["git", "tag", "--force", tag], cwd=published, check=True)
    environ = {
        "PRE_COMMIT_HOME": str(tmp_path / "cache"),
        "PRE_COMMIT_COLOR": "never",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{published.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/dsguard/dsguard",
    }
    compare(page, replay(text, Shell(folder, environ), {"console", "console network"}))


def fences(name: str) -> dict[str, str]:
    """The files that a page shows, by their names."""
    found = FENCE.finditer((DOCS / name).read_text(encoding="utf-8"))
    named = [(fence["info"].split(), fence["body"]) for fence in found]
    return {info[1]: body for info, body in named if info[1:] and "." in info[1]}


def test_workflows_use_inputs_that_the_action_has() -> None:
    files = fences("ci.md")
    for name in (".github/workflows/dsguard.yml", ".github/workflows/code-scanning.yml"):
        steps = YAML(typ="safe").load(files[name])["jobs"]["dsguard"]["steps"]
        (step,) = [step for step in steps if step["uses"].startswith("dsguard/dsguard@")]
        assert set(step["with"]) <= set(ACTION["inputs"])
    table = re.findall(r"^\| `([a-z-]+)` \|", (DOCS / "ci.md").read_text(), re.MULTILINE)
    assert set(ACTION["inputs"]) <= set(table)


def test_hooks_that_pages_use_exist() -> None:
    for page in ("ci.md", "first-ten-minutes.md"):
        (repo,) = YAML(typ="safe").load(fences(page)[".pre-commit-config.yaml"])["repos"]
        assert {hook["id"] for hook in repo["hooks"]} <= set(HOOKS)


def test_settings_of_editors_are_well_formed() -> None:
    json.loads(fences("editors.md")[".vscode/settings.json"])
    tomllib = pytest.importorskip("tomllib", reason="tomllib came with Python 3.11")
    (toml,) = re.findall(r"^```toml\n(.*?)^```", (DOCS / "editors.md").read_text(), re.M | re.S)
    assert tomllib.loads(toml)["language-server"]["dsguard"]["args"] == ["server"]


@pytest.mark.parametrize(
    "page", [*PAGES, DOCS / "api.md", ROOT / "README.md"], ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
