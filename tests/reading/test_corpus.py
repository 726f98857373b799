"""Configs from the wild read as hjson reads them.

Their folder comes from the environment variable DSGUARD_CORPUS.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsguard.reading import load_path, parse
from tests.reading.judges import REFUSED, dsguard_says, hjson_says, json_says, same

CORPUS = os.environ.get("DSGUARD_CORPUS")
FILES = sorted(Path(CORPUS).rglob("*.json")) if CORPUS else []

pytestmark = pytest.mark.skipif(not FILES, reason="DSGUARD_CORPUS names no folder with configs")


def test_every_config_reads_as_hjson_reads_it() -> None:
    for path in FILES:
        text = path.read_bytes().decode("utf-8")
        theirs = hjson_says(text)
        assert same(dsguard_says(text), theirs), path.name
        if theirs is not REFUSED:
            stops = [d for d in parse(load_path(path)).deviations if d.stops]
            assert bool(stops) == (json_says(text) is REFUSED), path.name
