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
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from dsguard.render.contract import contract_schema
from dsguard.render.json_report import report_schema
from dsguard.rules import all_rules

ROOT = Path(__file__).resolve().parent.parent
SHOWN = 20
"""How many lines of a difference --check shows."""


def report_schema_file() -> str:
    """The JSON Schema of the JSON report, version 1."""
    return json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n"


def contract_schema_file() -> str:
    """The JSON Schema of the run contract, version 1."""
    return json.dumps(contract_schema(), indent=2, ensure_ascii=False) + "\n"


def rule_index() -> str:
    """The list of all rules, with links to their pages."""
    lines = [
        "# Rules",
        "",
        "Every rule has a page: what it finds, why it matters, an example, a way out and when it",
        "is fine. `dsguard explain RULE` shows it in the terminal.",
    ]
    family = ""
    for rule in all_rules():
        meta = rule.meta
        if meta.family != family:
            family = meta.family
            lines += [
                "",
                f"## {family}",
                "",
                "| code | rule | severity | finds |",
                "|---|---|---|---|",
            ]
        page = f"../src/dsguard/rules/{family}/{meta.slug.replace('-', '_')}.md"
        lines.append(
            f"| {meta.code} | [{meta.slug}]({page}) | {meta.severity.value} | {meta.summary} |"
        )
    return "\n".join(lines) + "\n"


GENERATED: Mapping[str, Callable[[], str]] = {
    "docs/contract-v1.schema.json": contract_schema_file,
    "docs/report-v1.schema.json": report_schema_file,
    "docs/rules.md": rule_index,
}


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write or check every generated file under a root; 1 where a check fails."""
    parser = argparse.ArgumentParser(description="Write the files that are made from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    check = parser.parse_args(arguments).check
    stale = False
    for name, make in GENERATED.items():
        path, new = root / name, make()
        old = path.read_text(encoding="utf-8") if path.exists() else None
        if old == new:
            continue
        if check:
            stale = True
            print(f"{name} is out of date; run: python tools/generate.py")
            print("".join(difference(old or "", new)), end="")
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
