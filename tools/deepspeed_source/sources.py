"""The source of a DeepSpeed package as modules and the names in them; nothing is imported."""

from __future__ import annotations

import ast
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version


class Sources:
    """The modules of a DeepSpeed package, from an archive, a folder or the installed one."""

    def __init__(self, place: Path) -> None:
        if place.is_file():
            with tarfile.open(place) as archive:
                self._texts = {
                    member.name.partition("/")[2]: archive.extractfile(member).read().decode()  # type: ignore[union-attr]
                    for member in archive
                    if member.isfile() and member.name.endswith((".py", "/version.txt"))
                }
            self.version = Version(self._texts["version.txt"].strip().partition("+")[0])
        else:
            self._texts = {
                path.relative_to(place).as_posix(): path.read_text("utf-8")
                for path in place.glob("deepspeed/**/*.py")
            }
            self.version = _version(place)
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """The module of a dotted name, None where the package has no such file."""
        if name not in self._modules:
            path = name.replace(".", "/")
            text = self._texts.get(f"{path}.py")
            package = text is None
            text = text if text is not None else self._texts.get(f"{path}/__init__.py")
            self._modules[name] = Module(name, text, package) if text is not None else None
        return self._modules[name]


def _version(place: Path) -> Version:
    written = place / "version.txt"
    if written.is_file():
        return Version(written.read_text("utf-8").strip().partition("+")[0])
    text = (place / "deepspeed" / "git_version_info_installed.py").read_text("utf-8")
    return Version(re.findall(r"version='([\d.]+)", text)[0])


class Module:
    """The names that a module defines and imports."""

    def __init__(self, name: str, text: str, is_package: bool) -> None:
        self.name = name
        self._package = name if is_package else name.rpartition(".")[0]
        self.definitions: dict[str, ast.stmt] = {}
        self.values: dict[str, ast.expr] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}
        self.stars: list[str] = []
        self._collect(ast.parse(text).body)

    def _collect(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.definitions[node.name] = node
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.values[target.id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if node.value is not None:
                    self.values[node.target.id] = node.value
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self.add_import(node, self.imports)
            elif isinstance(node, ast.If | ast.Try):
                self._collect(node.body)
                self._collect(node.orelse)

    def add_import(
        self, node: ast.Import | ast.ImportFrom, to: dict[str, tuple[str, str | None]]
    ) -> None:
        """Note what the names of an import stand for: a module, or a name in one."""
        if isinstance(node, ast.Import):
            for name in node.names:
                to[name.asname or name.name.partition(".")[0]] = (name.name, None)
            return
        base = node.module or ""
        if node.level:
            parents = self._package.split(".")
            parents = parents[: len(parents) - node.level + 1]
            base = ".".join([*parents, base]) if base else ".".join(parents)
        for name in node.names:
            if name.name == "*":
                self.stars.append(base)
            else:
                to[name.asname or name.name] = (base, name.name)
