"""What ``guard(expect=…)`` understands, and what it says to the rest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dsguard.runtime.expectation import Expectation
from dsguard.runtime.place import NOWHERE


def asked(expect: Any, ranks: int = 2) -> dict[str, Any]:
    expectation = Expectation.read(expect, NOWHERE, ranks)
    return {name: known.value for name, known in expectation.asked.items()}


@pytest.fixture
def config(tmp_path: Path) -> Any:
    def write(text: str) -> Path:
        path = tmp_path / "ds_config.json"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_nothing_is_asked() -> None:
    assert asked(None) == {}
    assert asked({}) == {}


def test_a_mapping() -> None:
    wanted = {
        "gradient_accumulation_steps": 8,
        "train_batch_size": 32,
        "micro_batch_size": 2,
        "gradient_clipping": 1.0,
        "zero_stage": 2,
        "precision": "bf16",
        "data_parallel_size": 2,
        "world_size": 2,
    }
    assert asked(wanted) == wanted


def test_the_names_of_the_config() -> None:
    assert asked({"train_micro_batch_size_per_gpu": 2}) == {"micro_batch_size": 2}
    assert asked({"micro_batch_size_per_gpu": 2}) == {"micro_batch_size": 2}


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ({"gradient_acumulation_steps": 8}, "did you mean gradient_accumulation_steps?"),
        ({"learning_rate": 0.1}, "does not know 'learning_rate'; it knows train_batch_size"),
        ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps cannot be 0"),
        ({"gradient_accumulation_steps": 2.0}, "gradient_accumulation_steps cannot be 2.0"),
        ({"gradient_accumulation_steps": "8"}, "gradient_accumulation_steps cannot be '8'"),
        ({"gradient_accumulation_steps": True}, "gradient_accumulation_steps cannot be True"),
        ({"gradient_clipping": -1}, "gradient_clipping cannot be -1"),
        ({"zero_stage": 4}, "zero_stage cannot be 4"),
        ({"zero_stage": True}, "zero_stage cannot be True"),
        ({"precision": "half"}, "precision cannot be 'half'"),
    ],
)
def test_a_mapping_with_a_mistake(expect: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        asked(expect)


@pytest.mark.parametrize("expect", [8, 1.0, ["ds_config.json"]])
def test_neither_a_mapping_nor_a_path(expect: Any) -> None:
    with pytest.raises(TypeError, match="takes a mapping or the path of a ds_config"):
        asked(expect)


def test_a_config_is_solved_for_the_ranks(config: Any) -> None:
    path = config(
        """{
            // comments are read as DeepSpeed reads them
            "train_batch_size": 32,
            "train_micro_batch_size_per_gpu": 2,
            "gradient_clipping": 0.5,
            "zero_optimization": {"stage": 2},
            "bf16": {"enabled": true}
        }"""
    )
    wanted = {
        "train_batch_size": 32,
        "micro_batch_size": 2,
        "gradient_accumulation_steps": 8,
        "gradient_clipping": 0.5,
        "zero_stage": 2,
        "precision": "bf16",
    }
    assert asked(path) == wanted
    assert asked(str(path)) == wanted
    known = Expectation.read(path, NOWHERE, 2).asked["gradient_clipping"]
    assert known.origin.location is not None
    assert known.origin.location.source.position(known.origin.location.span.start)[0] == 5


def test_auto_expects_nothing(config: Any) -> None:
    path = config(
        '{"train_batch_size": "auto", "gradient_accumulation_steps": 4,'
        ' "gradient_clipping": "auto", "zero_optimization": {"stage": 1}}'
    )
    assert asked(path) == {"zero_stage": 1}


def test_batch_sizes_that_do_not_multiply_expect_nothing(config: Any) -> None:
    path = config(
        '{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2,'
        ' "gradient_accumulation_steps": 4}'
    )
    assert asked(path) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"train_batch_size": 8,, }', "ds_config.json:1:"),
        ('{\n  "train_batch_size": 8\n', "ds_config.json:"),
        ("", "ds_config.json holds no settings"),
        ("[1, 2]", "ds_config.json holds no settings"),
    ],
)
def test_a_config_that_cannot_be_read(config: Any, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)) as raised:
        asked(config(text))
    assert str(raised.value).startswith("guard(expect=...): ")


def test_a_config_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nothing\.json"):
        asked(tmp_path / "nothing.json")
    with pytest.raises(ValueError, match=r"guard\(expect=\.\.\.\)"):
        asked(tmp_path)


def test_what_the_script_changes_is_no_longer_asked() -> None:
    both = Expectation.read({"micro_batch_size": 2, "zero_stage": 1}, NOWHERE, 1)
    assert list(both.without("micro_batch_size").asked) == ["zero_stage"]
