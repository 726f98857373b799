"""Notebooks: which code is read, and where it stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsguard.script.load import load_script
from dsguard.script.notebook import NotANotebookError, read_notebook


def notebook(*cells: str | tuple[str, str]) -> str:
    made = []
    for cell in cells:
        kind, text = ("code", cell) if isinstance(cell, str) else cell
        made.append({"cell_type": kind, "source": text.splitlines(keepends=True)})
    return json.dumps({"cells": made, "nbformat": 4})


def test_places_are_those_of_the_cells(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    text = notebook(
        ("markdown", "# Training"),
        "import deepspeed\n%cd work\n",
        "%%bash\nls engine.step()\n",
        "!pip install x\nengine = deepspeed.initialize(model=m)[0]\n",
        "broken (\n",
        "ü = 1\nengine.step()\n",
    )
    path.write_text(text, encoding="utf-8")
    script = load_script(path, "train.ipynb")
    assert script is not None
    assert script.unreadable is None
    (step,) = script.loop.actions
    source, span, _ = step.location
    assert source.name == "train.ipynb:cell 6"
    assert source.slice(span) == "engine.step()"
    assert source.position(span.start) == (2, 1)
    assert script.loop.engines[0].location.source.name == "train.ipynb:cell 4"


@pytest.mark.parametrize(
    "cell",
    ["if x:\n    !ls\n", "%matplotlib inline\n", "torch.nn?\n", "%%time\nx = 1\n", "!x\n", "!\n"],
)
def test_magics_keep_the_length_and_the_rest(cell: str) -> None:
    text = read_notebook(notebook(cell, "y = 2"), "n.ipynb").text
    assert len(text) == len(cell) + len("y = 2") + 2
    compile(text, "n", "exec")
    assert text.endswith("y = 2\n")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 1}', "{" * 100_000, "x = 1"])
def test_what_is_no_notebook(text: str) -> None:
    with pytest.raises(NotANotebookError):
        read_notebook(text, "n.ipynb")


@pytest.mark.parametrize("cells", [[1], [{}], [{"cell_type": "code", "source": 3}], []])
def test_odd_cells(cells: object) -> None:
    assert read_notebook(json.dumps({"cells": cells}), "n.ipynb").text.strip() == ""
