"""Write the files of this repository that are made from its code.

    python tools/generate.py           writes them
    python tools/generate.py --check   fails where one on disk differs, and shows how

A new kind of generated file is one function that returns its text, and one line in
``GENERATED``.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from dsguard.model.rule import Rule
from dsguard.records.schema import overview_schema, record_schema
from dsguard.render.balance_json import balance_report_schema
from dsguard.render.contract import contract_schema
from dsguard.render.json_report import report_schema
from dsguard.rules import page, symptoms
from dsguard.runtime.rule import all_guard_rules
from rule_modules import INDEX, index_of_rules, linter_rules

ROOT = Path(__file__).resolve().parent.parent
RULES = "docs/rules"
"""The folder of the rule pages; nothing else stands in it."""

SHOWN = 20
"""How many lines of a difference --check shows."""


def rules() -> list[Rule[Any]]:
    """Every rule by code, from its module: the index may be what is out of date."""
    return sorted([*linter_rules(), *all_guard_rules()], key=lambda rule: rule.meta.code)


def report_schema_file() -> str:
    """The JSON Schema of the JSON report, version 1."""
    return json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n"


def contract_schema_file() -> str:
    """The JSON Schema of the run contract, version 1."""
    return json.dumps(contract_schema(), indent=2, ensure_ascii=False) + "\n"


def rule_page(rule: Rule[Any]) -> str:
    """The page of a rule, its links leading to the other pages and to the guides above them."""
    text = re.sub(r"\]\((?:\.\./)+docs/([\w-]+\.md)\)", r"](<../\1>)", page(rule))
    text = re.sub(r"\]\((?:\.\./)*(?:\w+/)*(\w+)\.md\)", lambda m: f"]({_file(m[1])})", text)
    return re.sub(r"\]\(<(.*?)>\)", r"](\1)", text)


def record_schema_file() -> str:
    """The JSON Schema of a line of the guard's record, version 1."""
    return json.dumps(record_schema(), indent=2, ensure_ascii=False) + "\n"


def run_report_schema_file() -> str:
    """The JSON Schema of what ``dsguard report`` says as JSON, version 1."""
    return json.dumps(overview_schema(), indent=2, ensure_ascii=False) + "\n"


def balance_report_schema_file() -> str:
    """The JSON Schema of what ``dsguard balance`` says as JSON, version 1."""
    return json.dumps(balance_report_schema(), indent=2, ensure_ascii=False) + "\n"


def rule_index() -> str:
    """The list of all rules by family, with links to their pages."""
    lines = [
        "# Rules",
        "",
        "Every rule has a page: what it finds, why it matters, an example, a way out and when it",
        "is fine. `dsguard explain RULE` shows it in the terminal, and `dsguard explain MESSAGE`",
        "finds the rules behind an error message; [by symptom](symptoms.md) they stand here too.",
    ]
    for family, members in groupby(rules(), key=lambda rule: rule.meta.family):
        lines += ["", f"## {family}", "", "| code | rule | severity | finds |", "|---|---|---|---|"]
        for meta in (rule.meta for rule in members):
            link = f"[{meta.slug}]({_file(meta.slug)})"
            lines.append(f"| {meta.code} | {link} | {meta.severity.value} | {meta.summary} |")
    return "\n".join(lines) + "\n"


def symptom_index() -> str:
    """What users see, with the rules that explain it."""
    seen: dict[str, list[str]] = {}
    for rule in rules():
        for symptom in symptoms(rule):
            seen.setdefault(symptom, []).append(f"[{rule.meta.slug}]({_file(rule.meta.slug)})")
    lines = ["# Rules by symptom", "", "[By family](README.md) lists all of them."]
    messages = {symptom for symptom in seen if re.fullmatch("`[^`]*`", symptom)}
    for title, found in (("Error messages", messages), ("Everything else", seen.keys() - messages)):
        chosen = sorted(found, key=lambda symptom: symptom.lower().lstrip("`"))
        lines += ["", f"## {title}", "", "| you see | rule |", "|---|---|"]
        lines += [f"| {_cell(symptom)} | {', '.join(seen[symptom])} |" for symptom in chosen]
    return "\n".join(lines) + "\n"


def _file(name: str) -> str:
    return f"{name.replace('_', '-')}.md"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


GENERATED: Mapping[str, Callable[[], str]] = {
    "docs/balance-report-v1.schema.json": balance_report_schema_file,
    "docs/contract-v1.schema.json": contract_schema_file,
    "docs/record-v1.schema.json": record_schema_file,
    "docs/report-v1.schema.json": report_schema_file,
    "docs/run-report-v1.schema.json": run_report_schema_file,
    INDEX: index_of_rules,
    f"{RULES}/README.md": rule_index,
    f"{RULES}/symptoms.md": symptom_index,
    **{f"{RULES}/{_file(rule.meta.slug)}": partial(rule_page, rule) for rule in rules()},
}


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write or check every generated file under a root; 1 where a check fails."""
    parser = argparse.ArgumentParser(description="Write the files that are made from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    check = parser.parse_args(arguments).check
    wanted = {name: make() for name, make in GENERATED.items()}
    found = {path.relative_to(root).as_posix() for path in (root / RULES).glob("*.md")}
    stale = False
    for name in sorted({*wanted, *found}):
        path, new = root / name, wanted.get(name)
        old = path.read_text(encoding="utf-8") if path.exists() else None
        if old == new:
            continue
        if check:
            stale = True
            print(f"{name} is out of date; run: python tools/generate.py")
            print("".join(difference(old or "", new or "")), end="")
        elif new is None:
            path.unlink()
            print(f"removed {name}, whose rule is gone")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new, encoding="utf-8", newline="\n")
            print(f"wrote {name}")
    return int(stale)


def difference(old: str, new: str) -> list[str]:
    """The first lines of what a run of this tool would change."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), "on disk", "generated", n=1
    )
    shown = list(islice(lines, SHOWN + 1))
    return shown if len(shown) <= SHOWN else [*shown[:SHOWN], "...\n"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
