"""Real public configs: what ``dsguard check`` says of each alone.

The configs are not part of the project; ``DSGUARD_CORPUS`` names a folder that holds them under
``configs/``. ``corpus_findings.json`` has the codes of errors and warnings by the name of the
file. A config that is not in the table must be clean. The table is made again with
``DSGUARD_UPDATE=1``; look at what changes before you keep it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import UPDATE, Dsguard

CORPUS = os.environ.get("DSGUARD_CORPUS")
TABLE = Path(__file__).with_name("corpus_findings.json")
TARGET = "0.19.8"

pytestmark = pytest.mark.skipif(
    not CORPUS, reason="DSGUARD_CORPUS names no folder of public configs"
)

Codes = dict[str, list[str]]
"""Severity to the codes found with it, each once and sorted."""


def codes(path: Path, dsguard: Dsguard) -> Codes:
    outcome = dsguard(f"check -o json --target {TARGET} {path.name}", path.parent)
    found: dict[str, set[str]] = {}
    for finding in json.loads(outcome.out)["findings"]:
        if finding["severity"] != "info":
            found.setdefault(finding["severity"], set()).add(finding["code"])
    return {severity: sorted(found[severity]) for severity in sorted(found)}


def test_every_config_has_the_findings_of_the_table(dsguard: Dsguard) -> None:
    configs = sorted((Path(CORPUS or ".") / "configs").glob("*.json"))
    assert configs
    found = {path.stem: said for path in configs if (said := codes(path, dsguard))}
    if UPDATE:
        TABLE.write_text(_compact(found), encoding="utf-8")
    assert found == json.loads(TABLE.read_text(encoding="utf-8"))


def _compact(table: dict[str, Codes]) -> str:
    """One line a config, so that a change of the table reads well."""
    lines = (f"  {json.dumps(name)}: {json.dumps(said)}" for name, said in table.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"
