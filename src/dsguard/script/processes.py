"""Whether a script starts the processes of its job itself, or says how many there are.

It need not do so in every run: ``if __name__``, conditions and calls are not followed. A script
that may starts ranks of which the command line says nothing.
"""

from __future__ import annotations

import ast
import re
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
        *("accelerate.commands.launch.launch_command", "accelerate.commands.launch.main"),
        *("detectron2.engine.launch", "detectron2.engine.launch.launch"),
        *("torch_xla.distributed.xla_multiprocessing.spawn", "torch_xla.launch"),
        *("os.fork", "pyspark.ml.torch.distributor.TorchDistributor"),
    )
)
_WORKERS = frozenset(("multiprocessing.Process", "torch.multiprocessing.Process"))
_FABRICS = frozenset(("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric"))
"""Start a process a device, of which they take all where nothing else is said."""
_LAUNCHERS = frozenset(
    (
        *("torch.distributed.run", "torch.distributed.launch", "deepspeed.launcher.runner"),
        *("accelerate.commands.launch", "accelerate.commands.accelerate_cli"),
    )
)
_JOBS = frozenset(("ray", "submitit"))
"""Libraries that start the functions they are given as tasks of a cluster."""
_IDLE = frozenset(("ray.init", "ray.is_initialized", "ray.shutdown", "ray.cluster_resources"))
"""What of them starts no task."""
_COMMANDS = frozenset(
    (
        *("subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call"),
        *("subprocess.check_output", "subprocess.getoutput", "os.system", "os.popen"),
        *("os.execv", "os.execve", "os.execvp", "os.execvpe", "os.execl", "os.execlp"),
        *("os.execle", "os.execlpe", "os.spawnv", "os.spawnvp", "os.posix_spawn"),
        *("os.posix_spawnp", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
    )
)
_HARMLESS = frozenset(
    (
        *("7z", "apt", "apt-get", "awk", "aws", "azcopy", "basename", "bunzip2", "bzip2", "c++"),
        *("cat", "cc", "cd", "chmod", "chown", "clang", "cmake", "cp", "curl", "cut", "date"),
        *("df", "diff", "dirname", "dpkg", "ds_report", "du", "echo", "export", "false", "ffmpeg"),
        *("ffprobe", "find", "free", "g++", "gcc", "gcloud", "getconf", "git", "grep", "gsutil"),
        *("gunzip", "gzip", "head", "hf", "hg", "hipcc", "hostname", "huggingface-cli", "ibstat"),
        *("id", "ifconfig", "ip", "jq", "kill", "killall", "ldconfig", "ldd", "ln", "ls"),
        *("lscpu", "lsof", "lspci", "make", "md5sum", "mkdir", "mktemp", "mv", "ninja", "nproc"),
        *("nvcc", "nvidia-smi", "ping", "pip", "pip3", "pkill", "printenv", "printf", "ps", "pwd"),
        *("rclone", "readlink", "realpath", "rm", "rmdir", "rocm-smi", "rocminfo", "rsync"),
        *("s5cmd", "sacct", "scancel", "scontrol", "scp", "sed", "set", "sha256sum", "sinfo"),
        *("sleep", "sort", "squeue", "sysctl", "tail", "tar", "tee", "tensorboard", "test"),
        *("touch", "true", "ulimit", "umask", "uname", "uniq", "unlink", "unzip", "uptime"),
        *("wandb", "wc", "wget", "where", "which", "whoami", "xz", "zip", "zstd"),
    )
)
"""Programs that scripts ask for something or have handle files, and that start no training."""
_PREFIXES = frozenset(("command", "exec", "nice", "nohup", "sudo", "time"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_TOKENS = re.compile(r"""\d*>&\d*|&>|(?P<ends>[;&|\n()`]+)|'[^']*'|"[^"]*"|[^\s;&|()`'"]+""")
"""The words of a command line, and what ends one command in it."""
_UNKNOWN = "\0"
_MOST_WORDS = 20
"""So many words of a command are looked at."""


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
        names = _with_aliases(module, _names(module))
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
                if alias.name == "*":
                    found.update(_exported(node.module))
    return found


def _exported(module: str) -> dict[str, str]:
    """What ``from … import *`` binds of what counts here."""
    contexts = ("multiprocessing.get_context", "torch.multiprocessing.get_context")
    names = (*_STARTS, *_COMMANDS, *contexts)
    return {name.rpartition(".")[2]: name for name in names if name.rpartition(".")[0] == module}


def _with_aliases(module: LocalModule, names: dict[str, str]) -> dict[str, str]:
    """The names, and those that an assignment gives to what counts here: ``spawn = mp.spawn``."""
    found: dict[str, str] = {}
    for node in ast.walk(module.tree):
        full = _dotted(node.value, names) if isinstance(node, ast.Assign) else ""
        if isinstance(node, ast.Assign) and (
            full in _STARTS or full in _COMMANDS or (full and isinstance(node.value, ast.Call))
        ):
            found.update((one.id, full) for one in node.targets if isinstance(one, ast.Name))
    return {**found, **names}


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    """The full name of what an expression names; empty where it is no imported name."""
    owner, parts = _path(node)
    if isinstance(owner, ast.Call):
        # A context has what its module has: get_context("spawn").Process
        module, _, made = _full(*_path(owner.func), names).rpartition(".")
        return ".".join((module, *parts)) if made == "get_context" else ""
    return _full(owner, parts, names)


def _path(node: ast.AST) -> tuple[ast.AST, list[str]]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return node, parts[::-1]


def _full(owner: ast.AST, parts: list[str], names: dict[str, str]) -> str:
    if not isinstance(owner, ast.Name) or owner.id not in names:
        return ""
    return ".".join((names[owner.id], *parts))


def _started_by(node: ast.AST, names: dict[str, str], module: LocalModule) -> str:
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            if (name := _dotted(base, names)) in _WORKERS:
                return f"derives {node.name} from {name}"
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and any(
        _dotted(one, names) == "ray.remote" for one in node.decorator_list
    ):
        return f"makes {node.name} a task of ray"
    if not isinstance(node, ast.Call):
        return ""
    name = _dotted(node.func, names)
    if not name:
        return ""
    if name in _STARTS or (name.partition(".")[0] in _JOBS and name not in _IDLE):
        return f"calls {name}"
    if name in _FABRICS and not any(
        one.arg == "devices" and _is_one(one.value) for one in node.keywords
    ):
        return f"calls {name}"
    if name == "runpy.run_module" and node.args and _text(node.args[0]) in _LAUNCHERS:
        return f"runs a launcher with {name}"
    # What a helper module runs is hardly the training.
    if name in _COMMANDS and module.is_script and not _is_harmless(node):
        return f"runs a command with {name}"
    return ""


def _is_harmless(call: ast.Call) -> bool:
    """Whether all programs that a call runs are known, and none of them starts a training."""
    given: ast.AST | None = call.args[0] if call.args else None
    if given is None:
        given = next((one.value for one in call.keywords if one.arg == "args"), None)
    if isinstance(given, ast.Call) and (of := _split(given)) is not None:
        given = of
    commands = _listed(given)
    if commands is None:
        commands = _commands(_text(given))
    return bool(commands) and all(_starts_nothing(words) for words in commands)


def _split(call: ast.Call) -> ast.AST | None:
    """The text of ``"…".split()`` and of ``shlex.split("…")``."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "split":
        return None
    if isinstance(call.func.value, ast.Name) and call.func.value.id == "shlex":
        return call.args[0] if call.args else None
    return call.func.value


def _listed(node: ast.AST | None) -> list[list[str]] | None:
    """The command that a list spells, ``[…] + more`` among them; None where there is no list."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        node = node.left
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None
    return [[_text(one) for one in node.elts[:_MOST_WORDS]]]


def _text(node: ast.AST | None) -> str:
    """A text that is put together; a mark stands for what nobody knows of it."""
    parts: list[str] = []
    left = [node]
    while left:
        one = left.pop()
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add):
            left += (one.right, one.left)
        elif isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod):
            left.append(one.left)
        elif isinstance(one, ast.JoinedStr):
            left += reversed(one.values)
        elif isinstance(one, ast.FormattedValue):
            left.append(one.value)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            parts.append(one.value)
        elif isinstance(one, ast.Attribute) and one.attr == "executable":
            parts.append("python")
        elif (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr == "format"
        ):
            left.append(one.func.value)
        else:
            parts.append(_UNKNOWN)
    return "".join(parts)


def _commands(text: str) -> list[list[str]]:
    """The commands of a command line, as words."""
    commands: list[list[str]] = [[]]
    for token in _TOKENS.finditer(text.replace("\\\n", " ")):
        if token["ends"]:
            commands.append([])
        elif len(commands[-1]) < _MOST_WORDS:
            commands[-1].append(token[0].strip("\"'"))
    return [words for words in commands if words]


def _starts_nothing(words: list[str]) -> bool:
    at = 0
    while at < len(words) and (words[at] in _PREFIXES or _ASSIGNMENT.match(words[at])):
        at += 1
    name = words[at].rpartition("/")[2] if at < len(words) else ""
    if name.startswith("python"):
        return words[at + 1 : at + 3] == ["-m", "pip"]
    return name in _HARMLESS


def _counted_by(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        keywords = {one.arg: one.value for one in node.keywords}
        if name in ("init_process_group", "init_distributed") and "world_size" in keywords:
            return "" if _is_usual(keywords["world_size"]) else f"gives {name} a world_size"
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name in ("update", "setdefault", "putenv") and _is_environ(owner, name):
            return "" if all(_is_usual(value) for value in _sizes(node)) else f"sets {_SIZE}"
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Constant)
                and target.slice.value == _SIZE
                and not _is_usual(node.value)
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


def _is_usual(node: ast.AST) -> bool:
    """Whether a size is what it would be anyway: one, or what the environment says, or one."""
    while isinstance(node, ast.Call) and _converts(node):
        node = node.args[0]
    if isinstance(node, ast.Subscript):
        return _is_environ(node.value, "get") and _is_size(node.slice)
    if isinstance(node, ast.Call) and node.args and _is_size(node.args[0]):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        reads = isinstance(node.func, ast.Attribute) and (
            (node.func.attr == "getenv" and _is_environ(owner, "putenv"))
            or (node.func.attr == "get" and _is_environ(owner, "get"))
        )
        return reads and all(_is_one(one) for one in node.args[1:])
    return _is_one(node)


def _converts(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Name) and call.func.id in ("int", "str")
    return named and len(call.args) == 1


def _is_size(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == _SIZE


def _is_one(node: ast.AST) -> bool:
    while isinstance(node, ast.Call) and _converts(node):
        node = node.args[0]
    return isinstance(node, ast.Constant) and str(node.value) == "1"
