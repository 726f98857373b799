"""Asking many releases of DeepSpeed, each in a process of its own, what they say to a config."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

JUDGE = Path(__file__).with_name("judge.py")


class Question(NamedTuple):
    """A config's text and the number of processes it is read in."""

    name: str
    text: str
    world_size: int


class Answer(NamedTuple):
    """Why DeepSpeed refuses the config, or the batch numbers that it ends up with."""

    refused: str | None
    numbers: tuple[Any, ...] | None


class Release(NamedTuple):
    """A release of DeepSpeed: its version and the folder that holds its package."""

    version: str
    folder: Path


def releases_in(folder: Path) -> list[Release]:
    """The unpacked sdists in a folder, whatever their folders are called, oldest first."""
    found = []
    for package in folder.glob("*/deepspeed"):
        version = (package.parent / "version.txt").read_text("utf-8").strip().partition("+")[0]
        if re.fullmatch(r"\d+\.\d+\.\d+", version):
            found.append(Release(version, package.parent))
    return sorted(found, key=lambda release: tuple(int(n) for n in release.version.split(".")))


def ask(release: Release, questions: Sequence[Question]) -> Iterator[tuple[Question, Answer]]:
    """What a release answers to each question, in order."""
    lines = [json.dumps({"text": q.text, "world_size": q.world_size}) for q in questions]
    done = subprocess.run(
        [sys.executable, str(JUDGE), str(release.folder), release.version],
        input="\n".join(lines),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answers = done.stdout.splitlines()
    assert len(answers) == len(questions)
    for question, line in zip(questions, answers, strict=True):
        answer = json.loads(line)
        numbers = tuple(answer["numbers"]) if answer["numbers"] is not None else None
        yield question, Answer(answer["refused"], numbers)
