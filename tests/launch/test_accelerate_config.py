"""Accelerate's YAML: the values PyYAML gives, each at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsguard.launch.accelerate_config import AccelerateConfigError, read_accelerate_config
from dsguard.model.source import Location, Source, Span
from dsguard.model.tree import Document

pytest.importorskip("ruamel.yaml", reason="the yaml extra is not installed")

NOWHERE = Location(Source("<launch command>", "", is_file=False), Span(0, 0))
TEXT = """\
# written by hand
distributed_type: DEEPSPEED
mixed_precision: no
debug: yes
num_processes: 8   # all
deepspeed_config: &block
  zero_stage: 3
  gradient_clipping: 1.0
  offload: 1e-5
  hex: 0x10
  octal: 010
  big: 1_000
  quoted: "no"
  none: ~
  inf: -.inf
  text: |
    two
    lines
  list: [1, on, {a: b}]
fsdp_config:
  <<: *block
  zero_stage: 1
gpu_ids: '0,1'
"""


def read(tmp_path: Path, text: str) -> Document:
    (tmp_path / "acc.yaml").write_text(text, encoding="utf-8")
    return read_accelerate_config(tmp_path / "acc.yaml", "acc.yaml", NOWHERE)


def test_values_are_those_of_pyyaml(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert read(tmp_path, TEXT).value == yaml.safe_load(TEXT)


@pytest.mark.parametrize(
    ("pointer", "part", "text"),
    [
        ("/num_processes", "value", "8"),
        ("/num_processes", "member", "num_processes: 8"),
        ("/deepspeed_config/zero_stage", "key", "zero_stage"),
        ("/deepspeed_config/quoted", "value", '"no"'),
        ("/deepspeed_config/list/2/a", "value", "b"),
        ("/fsdp_config/zero_stage", "member", "zero_stage: 1"),
    ],
)
def test_values_stand_at_their_places(tmp_path: Path, pointer: str, part: str, text: str) -> None:
    document = read(tmp_path, TEXT)
    place = document.locate(pointer, part)  # type: ignore[arg-type]
    assert place.source.slice(place.span) == text


def test_a_byte_order_mark_shifts_nothing(tmp_path: Path) -> None:
    document = read(tmp_path, "\ufeffdistributed_type: FSDP\n")
    place = document.locate("/distributed_type")
    assert place.source.slice(place.span) == "FSDP"


def test_json_is_read_too(tmp_path: Path) -> None:
    assert read(tmp_path, '{"distributed_type": "NO", "use_cpu": true}').value == {
        "distributed_type": "NO",
        "use_cpu": True,
    }


@pytest.mark.parametrize(
    "text",
    [
        "a: [1",
        "a: b: c",
        "a: &x [*x]",
        "a: *y",
        "a: 1\n---\nb: 2",
        "a: !python/object:os.system x",
        "? [a]\n: b",
        "[" * 500,
        "a: &a [x,x]\nb: &b [" + "*a," * 400 + "]\nc: [" + "*b," * 400 + "]",
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(AccelerateConfigError) as error:
        read(tmp_path, text)
    assert error.value.trouble.kind == "accelerate-config-syntax"
    assert error.value.trouble.location.source.name == "acc.yaml"


def test_keys_of_earlier_releases_pass(tmp_path: Path) -> None:
    read(tmp_path, "distributed_type: 'NO'\nipex_config: {}\ntp_config: {}\n")
