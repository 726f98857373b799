"""Every rule has its page, with the agreed headings, and its examples are run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from dsguard.catalogue import rules
from dsguard.rules import all_rules, page, symptoms
from tests.conftest import ROOT, UPDATE, Dsguard

HEADINGS = ["What it finds", "Why it matters", "Example", "Fix", "When it is fine", "References"]
RULES = all_rules()
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Fence:
    info: str
    body: str
    start: int
    end: int


def fences(text: str) -> list[Fence]:
    return [
        Fence(m["info"], m["body"], m.start("body"), m.end("body")) for m in FENCE.finditer(text)
    ]


@pytest.mark.parametrize("rule", rules(), ids=lambda r: r.meta.slug)
def test_page_has_the_agreed_headings(rule) -> None:
    lines = page(rule).splitlines()
    assert lines[0] == f"# {rule.meta.slug} ({rule.meta.code})"
    assert [line[3:] for line in lines if line.startswith("## ")] == HEADINGS


@pytest.mark.parametrize("rule", rules(), ids=lambda r: r.meta.slug)
def test_symptoms_stand_between_the_summary_and_the_first_heading(rule) -> None:
    text = page(rule)
    head = text[: text.index("## What it finds")]
    found = symptoms(rule)
    assert text.count("Symptom:") == head.count("\n- Symptom: ") == len(found) == len(set(found))
    for symptom in found:
        assert symptom.count("`") % 2 == 0
        assert not symptom.endswith((".", ":"))


def test_links_between_the_published_pages_lead_somewhere() -> None:
    folder = ROOT / "docs" / "rules"
    links = {
        (path.name, link)
        for path in folder.glob("*.md")
        for link in re.findall(r"\]\(([^):]+\.md)\)", path.read_text(encoding="utf-8"))
    }
    assert len(links) > len(RULES)
    assert [link for link in links if not (folder / link[1]).is_file()] == []


@pytest.mark.parametrize(
    "rule", [r for r in RULES if r.meta.slug != "internal-error"], ids=lambda r: r.meta.slug
)
def test_examples_of_the_page_are_true(rule, dsguard: Dsguard, tmp_path: Path) -> None:
    """``json bad`` + ``console`` give exactly the ``text`` after them; ``json good`` is clean.

    ``python bad`` and ``python good`` are training scripts in the same way.

    A fence with a file name, such as ``text hosts.txt``, is a file that lies beside the config.
    """
    path = Path(__import__(rule.module, fromlist=["_"]).__file__).with_suffix(".md")
    text = page(rule)
    (tmp_path / "train.py").write_text("")
    command = ""
    bad = good = 0
    replaced: list[tuple[Fence, str]] = []
    for fence in fences(text):
        kind, _, verdict = fence.info.partition(" ")
        if "." in verdict:
            (tmp_path / verdict).write_text(fence.body)
        elif kind in ("json", "hjson", "python"):
            name = "train.py" if kind == "python" else "ds_config.json"
            (tmp_path / name).write_text(fence.body)
            if verdict == "good":
                good += 1
                outcome = dsguard(_run(command), tmp_path)
                assert f"({rule.meta.slug})" not in outcome.out, outcome.out
        elif kind == "console":
            command = fence.body.strip().removeprefix("$ ")
            assert command.startswith("dsguard check "), command
        elif kind == "text":
            bad += 1
            outcome = dsguard(_run(command), tmp_path)
            assert f"({rule.meta.slug})" in outcome.out, outcome.out
            shown = "".join(f"{line.rstrip()}\n" for line in outcome.out.splitlines())
            if UPDATE:
                replaced.append((fence, shown))
            else:
                assert fence.body == shown
    assert bad, "the page shows no example with its output"
    assert good, "the page shows nothing good"
    if replaced:
        for fence, shown in reversed(replaced):
            text = text[: fence.start] + shown + text[fence.end :]
        path.write_text(text, encoding="utf-8")


def _run(command: str) -> str:
    assert command, "a console block with the command must come before"
    line = command.removeprefix("dsguard ")
    return line if "--target" in line else line.replace("check ", "check --target 0.19.8 ", 1)
