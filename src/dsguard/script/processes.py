"""Whether a script starts the processes of its job itself, or says how many there are.

It need not do so in every run: ``if __name__``, conditions and calls are not followed. A script
that may starts ranks of which the command line says nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dsguard.script.module import LocalModule

_SIZE = "WORLD_SIZE"
_STARTS = frozenset(
    (
        *("multiprocessing.Process", "torch.multiprocessing.Process"),
        *("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"),
        *("torch.multiprocessing.spawn.spawn", "torch.distributed.launcher.api.elastic_launch"),
        *("torch.distributed.launcher.elastic_launch", "torch.distributed.run.main"),
        *("torch.distributed.run.run", "deepspeed.launcher.runner.main"),
        *("accelerate.notebook_launcher", "accelerate.debug_launcher"),
        *("accelerate.launchers.notebook_launcher", "accelerate.launchers.debug_launcher"),
        *("os.fork", "pyspark.ml.torch.distributor.TorchDistributor"),
    )
)
_JOBS = frozenset(("ray", "submitit"))
"""Libraries that start the functions they are given as tasks of a cluster."""
_COMMANDS = frozenset(
    (
        *("subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call"),
        *("subprocess.check_output", "subprocess.getoutput", "os.system", "os.popen"),
        *("os.execv", "os.execve", "os.execvp", "os.execvpe", "os.execl", "os.execlp"),
        *("os.execle", "os.execlpe", "os.spawnv", "os.spawnvp", "os.posix_spawn"),
        *("os.posix_spawnp", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
    )
)
_TELLS = frozenset(("cat", "df", "du", "git", "hostname", "ls", "lscpu", "nproc", "nvidia-smi"))
"""Programs that scripts ask for something, and that start nothing."""


class OwnRanks(Struct, frozen=True):
    """What in a script has a say in how many ranks there are.

    ``starts`` is the first place where it starts processes that may be ranks, ``counts`` the
    first where it says how many there are (``WORLD_SIZE``, ``world_size=``); both as a clause.
    """

    starts: str | None = None
    counts: str | None = None


def own_ranks(modules: Iterable[LocalModule]) -> OwnRanks:
    """What has a say in it, in the script and the local modules that it imports."""
    starts = counts = None
    for module in modules:
        names = _names(module)
        for node in ast.walk(module.tree):
            if starts is None and (found := _started_by(node, names, module)):
                starts = _at(found, node, module)
            if counts is None and (found := _counted_by(node)):
                counts = _at(found, node, module)
    return OwnRanks(starts, counts)


def _at(what: str, node: ast.AST, module: LocalModule) -> str:
    line = getattr(node, "lineno", 1)
    return f"{module.source.name}:{line} {what}"


def _names(module: LocalModule) -> dict[str, str]:
    """The names that imports bind → what they stand for."""
    found: dict[str, str] = {}
    for node in module.imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or name] = name
        elif not node.level and node.module:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    """The full name of what an expression names; empty where it is no imported name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr != "get_context" or not isinstance(node.func.value, ast.Name):
            return ""
        node = node.func.value  # get_context("spawn").Process is the module's own
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join((names[node.id], *reversed(parts)))


def _started_by(node: ast.AST, names: dict[str, str], module: LocalModule) -> str:
    if not isinstance(node, ast.Call):
        return ""
    name = _dotted(node.func, names)
    if not name:
        return ""
    if name in _STARTS or name.partition(".")[0] in _JOBS:
        return f"calls {name}"
    # What a helper module runs is hardly the training.
    if name in _COMMANDS and module.is_script and _program(node) not in _TELLS:
        return f"runs a command with {name}"
    return ""


def _program(call: ast.Call) -> str:
    """The program that a call runs, where it stands there."""
    given: ast.AST | None = call.args[0] if call.args else None
    if isinstance(given, (ast.List, ast.Tuple)) and given.elts:
        given = given.elts[0]
    if isinstance(given, ast.JoinedStr) and given.values:
        given = given.values[0]
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        words = given.value.split()
        return words[0].rpartition("/")[2] if words else ""
    return ""


def _counted_by(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        keywords = {one.arg: one.value for one in node.keywords}
        if name in ("init_process_group", "init_distributed") and "world_size" in keywords:
            return "" if _is_one(keywords["world_size"]) else f"gives {name} a world_size"
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name in ("update", "setdefault", "putenv") and _is_environ(owner, name):
            return "" if all(_is_one(value) for value in _sizes(node)) else f"sets {_SIZE}"
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Constant)
                and target.slice.value == _SIZE
                and not _is_one(node.value)
            ):
                return f"sets {_SIZE}"
    return ""


def _is_environ(owner: ast.AST | None, method: str) -> bool:
    if method == "putenv":
        return isinstance(owner, ast.Name) and owner.id == "os"
    if isinstance(owner, ast.Attribute):
        return owner.attr == "environ"
    return isinstance(owner, ast.Name) and "env" in owner.id


def _sizes(call: ast.Call) -> Iterator[ast.expr]:
    """What a call gives to WORLD_SIZE."""
    if len(call.args) == 2 and isinstance(call.args[0], ast.Constant):
        if call.args[0].value == _SIZE:
            yield call.args[1]
        return
    yield from (one.value for one in call.keywords if one.arg == _SIZE)
    for given in call.args[:1]:
        if isinstance(given, ast.Dict):
            for key, value in zip(given.keys, given.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == _SIZE:
                    yield value


def _is_one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and str(node.value) == "1"
