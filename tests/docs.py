"""Running the documentation: its commands are typed into a shell, its output is compared.

In a ``console`` block ``$ `` stands before a command (``> `` before its further lines), and its
output follows. A block whose info names a file, such as ``json ds_config.json``, writes that file.
``console network`` needs an index of packages, and ``console no-run`` is not run at all.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import PATH, SHELL

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Shell:
    """Runs commands one after the other, in one folder."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    code: int = 0

    def run(self, command: str) -> str:
        """What a command prints; ``$?`` in it is the exit code of the one before."""
        environ = dict(os.environ)
        for name in SHELL:
            environ.pop(name, None)
        environ["HF_HOME"] = os.devnull
        environ["PATH"] = PATH
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.code})\n{command}"],
            cwd=self.folder,
            env=environ | self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        self.code = done.returncode
        return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def replay(text: str, shell: Shell, kinds: Set[str] = frozenset({"console"})) -> str:
    """A page with the output that its commands have now; ``kinds`` of blocks are run."""
    made: list[str] = []
    last = 0
    for fence in FENCE.finditer(text):
        info, body = fence["info"].split(), fence["body"]
        if info[1:] and "." in info[1]:
            path = shell.folder / info[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
        if fence["info"] not in kinds:
            continue
        made += [text[last : fence.start("body")], _session(body, shell)]
        last = fence.end("body")
    return "".join([*made, text[last:]])


def _session(body: str, shell: Shell) -> str:
    shown = ""
    for command in re.findall(r"^\$ .*\n(?:> .*\n)*", body, re.MULTILINE):
        shown += command + shell.run(re.sub(r"^[$>] ", "", command, flags=re.MULTILINE))
    return shown
