# Written as such scripts are.
# ruff: noqa: UP006, UP007, UP035, UP045
"""Every kind of field that HfArgumentParser knows."""

import enum
from dataclasses import dataclass, field
from typing import ClassVar, List, Literal, Optional, Union

from transformers import HfArgumentParser


class Mode(str, enum.Enum):
    FAST = "fast"
    SLOW = "slow"


@dataclass
class Base:
    batch: int = 4
    rate: float = 1e-3
    name: str = "base"
    flag_on: bool = True


@dataclass
class Mixin:
    seed: int = 1
    count: "int" = 2


class Undecorated(Base):
    batch: int = 99


@dataclass
class Options(Undecorated, Mixin):
    limit: ClassVar[int] = 3
    rate: float = field(default=2e-3)
    mode: Mode = Mode.FAST
    style: Literal["a", "b", 3] = "a"
    maybe: Optional[bool] = None
    maybe_on: Optional[bool] = True
    plain: bool = field(default=False)
    text_or_none: Union[str, None] = None
    text_or_int: Union[int, str] = 5
    number: int | None = None
    items: List[int] = field(default_factory=lambda: [1, 2])
    none_items: Optional[List[str]] = None
    internal: int = field(default=3, init=False)
    texts: list[str] = field(default_factory=list, metadata={"aliases": ["--words", "-w"]})
    odd: int = (16,)  # a stray comma


@dataclass
class Required:
    first: int
    second: Literal["x", "y"]
    third: bool
    several: List[float]


parser = HfArgumentParser([Options, Required], allow_abbrev=False)
parser.add_argument("--extra", type=int, default=1)
options, required, rest = parser.parse_args_into_dataclasses()
