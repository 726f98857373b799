"""What may stand before a launcher: variables, and commands that run another command.

``VAR=value torchrun``, ``env``, ``nohup``, ``uv run``, ``bash -c "..."`` and so on are taken
off, one after the other, until the words start with something else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.launch.arguments import read_assignment
from dsguard.launch.context import Argument, Command, ShellSyntaxError, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class _Prefix(Struct, frozen=True):
    """A command that runs the command behind it.

    ``options`` is a text that :func:`~dsguard.launch.options.getopt` makes a table of.
    ``operands`` are words of its own before that command, such as the duration of ``timeout``;
    ``subcommand`` must stand before the options, as in ``uv run``. ``scripts`` says that a
    Python file or ``-m module`` may stand where the command is expected.
    """

    options: str
    operands: int = 0
    subcommand: str = ""
    scripts: bool = False


_RUN = _Prefix("-h|--help")
_CONDA = _Prefix(
    (
        "-n|--name: -p|--prefix: --cwd: -v|--verbose --dev --debug-wrapper-scripts "
        "--no-capture-output --live-stream -a|--attach: -e|--env: --clean-env --root-prefix: "
        "-r: --no-rc --no-env --rc-file: -q|--quiet -d|--detach --label:"
    ),
    subcommand="run",
)
_PREFIXES = {
    "env": _Prefix(
        "-i|--ignore-environment -u|--unset: -C|--chdir: -0|--null -v|--debug "
        "--block-signal:: --default-signal:: --ignore-signal::"
    ),
    "exec": _Prefix("-a: -c -l"),
    "command": _Prefix("-p"),
    "nohup": _RUN,
    "setsid": _Prefix("-c|--ctty -f|--fork -w|--wait"),
    "time": _Prefix("-a|--append -f|--format: -o|--output: -p|--portability -v|--verbose"),
    "timeout": _Prefix(
        "--foreground -k|--kill-after: --preserve-status -s|--signal: -v|--verbose",
        operands=1,
    ),
    "nice": _Prefix("-n|--adjustment:"),
    "ionice": _Prefix("-c|--class: -n|--classdata: -t|--ignore"),
    "stdbuf": _Prefix("-i|--input: -o|--output: -e|--error:"),
    "taskset": _Prefix("-a|--all-tasks -c|--cpu-list: -p|--pid"),
    "numactl": _Prefix(
        "-a|--all -b|--balancing -C|--physcpubind: -i|--interleave: -l|--localalloc "
        "-m|--membind: -N|--cpunodebind: -p|--preferred: -P|--preferred-many: "
        "-w|--weighted-interleave:"
    ),
    "sudo": _Prefix(
        "-A|--askpass -b|--background -C|--close-from: -D|--chdir: -E|--preserve-env:: "
        "-g|--group: -H|--set-home -h|--host: -i|--login -n|--non-interactive "
        "-P|--preserve-groups -p|--prompt: -R|--chroot: -S|--stdin -T|--command-timeout: "
        "-u|--user:"
    ),
    "uv": _Prefix(
        (
            "--active --all-extras --all-groups --all-packages -C|--config-setting: --color: "
            "--config-file: --compile-bytecode --default-index: --directory: --env-file: --exact "
            "--exclude-newer: --extra: --extra-index-url: -f|--find-links: --frozen --group: "
            "--gui-script --index: --index-strategy: -i|--index-url: --isolated --link-mode: "
            "--locked -m|--module --managed-python -n|--no-cache --no-config "
            "--no-default-groups --no-dev "
            "--no-editable --no-env-file --no-extra: --no-group: --no-index --no-managed-python "
            "--no-progress --no-project --no-python-downloads --no-sources --no-sync --offline "
            "--only-dev --only-group: --package: --prerelease: --project: -p|--python: -q|--quiet "
            "--refresh --reinstall --resolution: -s|--script --torch-backend: -U|--upgrade "
            "-v|--verbose -w|--with: --with-editable: --with-requirements:"
        ),
        subcommand="run",
        scripts=True,
    ),
    "poetry": _Prefix("-C|--directory: -n|--no-interaction -P|--project: -q -v", 0, "run"),
    "pixi": _Prefix(
        (
            "-e|--environment: --manifest-path: --frozen --locked --no-install --as-is -x "
            "--clean-env --force-activate --no-lockfile-update -q -v --color: --skip-deps"
        ),
        subcommand="run",
    ),
    "conda": _CONDA,
    "mamba": _CONDA,
    "micromamba": _CONDA,
}
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_EXPORTS = ("export", "declare", "local", "readonly")


class Stripped(Struct, frozen=True):
    """A command without its prefixes.

    ``environment`` are the variables that the command gets, those set on the way behind those of
    the shell. ``python`` is the word of a prefix that runs ``words`` as python would
    (``uv run train.py``). ``unread`` says why no command is left.
    """

    environment: tuple[Argument, ...]
    words: tuple[Word, ...]
    python: Word | None = None
    unread: str = ""


def program_name(word: Word) -> str:
    """The name of the program that a word calls: the last part of its path."""
    return word.text.rpartition("/")[2]


def strip_prefixes(
    command: Command,
    words: Sequence[Word],
    launches: Callable[[Word], bool],
    outer: Sequence[Argument] = (),
) -> Stripped:
    """Take the prefixes off.

    ``launches`` tells the name of a launcher; of several commands in a ``bash -c`` text the
    first one that holds one is read. ``outer`` are the variables set before.
    """
    left = tuple(words)
    environment = list(outer)
    while left:
        assignment = read_assignment(command, left[0])
        if assignment is not None:
            environment.append(assignment)
            left = left[1:]
            continue
        name = program_name(left[0])
        if name in SHELLS:
            at = _text_of_shell(left)
            if at is None:
                break
            inside = _inside(command, left[at], launches, environment)
            if not inside:
                reason = f"the text after {name} -c is no command that dsguard can read"
                return Stripped(tuple(environment), left, unread=reason)
            left = inside
            continue
        prefix = _PREFIXES.get(name)
        behind = _behind(command, prefix, left, environment) if prefix is not None else None
        if behind is None:
            break
        if prefix is not None and prefix.scripts and behind and _runs_python(behind[0]):
            return Stripped(tuple(environment), behind, python=left[0])
        left = behind
    return Stripped(tuple(environment), left)


def _behind(
    command: Command, prefix: _Prefix, words: tuple[Word, ...], environment: list[Argument]
) -> tuple[Word, ...] | None:
    """The words behind a prefix; None where this is no prefix, such as ``uv`` without ``run``."""
    from dsguard.launch.options import getopt
    from dsguard.launch.scan_getopt import scan_getopt

    rest = words[1:]
    if prefix.subcommand:
        at = next((i for i, w in enumerate(rest) if w.text == prefix.subcommand), None)
        if at is None:
            return None
        rest = rest[at + 1 :]
    scan = scan_getopt(command, rest, getopt(prefix.options))
    if program_name(words[0]) == "env":
        _unset(environment, scan.has("ignore_environment"), [a.value for a in scan.arguments])
    behind = (scan.script, *scan.rest) if scan.script is not None else ()
    if scan.has("module") and prefix.scripts and scan.script is not None:
        flag = next(w for w in rest if w.text in ("-m", "--module"))
        behind = (flag._replace(text="-m"), *behind)
    return behind[prefix.operands :]


def _unset(environment: list[Argument], everything: bool, names: Sequence[str | None]) -> None:
    environment[:] = [] if everything else [a for a in environment if a.flag not in names]


def _runs_python(word: Word) -> bool:
    return word.text == "-m" or word.text.endswith(".py")


def shell_text(words: Sequence[Word]) -> tuple[int, int] | None:
    """Where a shell stands that is given a text, as in ``srun bash -c text``, and that text."""
    for shell, word in enumerate(words):
        if program_name(word) in SHELLS:
            text = _text_of_shell(words[shell:])
            return None if text is None else (shell, shell + text)
    return None


def _text_of_shell(words: Sequence[Word]) -> int | None:
    """Where the text of ``bash -c text`` stands; None where the shell runs a file."""
    gives_text = False
    takes_value = False
    for at, word in enumerate(words[1:], start=1):
        if takes_value:
            takes_value = False
        elif re.match(r"[-+][a-zA-Z]", word.text):
            gives_text = gives_text or (word.text[0] == "-" and "c" in word.text)
            takes_value = word.text[-1] in "oO"
        elif not word.text.startswith("--"):
            return at if gives_text else None
    return None


def _inside(
    command: Command,
    text: Word,
    launches: Callable[[Word], bool],
    environment: list[Argument],
) -> tuple[Word, ...]:
    """The command to read in a shell text; the variables set before it are remembered."""
    from dsguard.launch.shell.split import split_inside

    try:
        commands = split_inside(command.source.text, text)
    except ShellSyntaxError:
        return ()
    variables: list[Argument] = []
    for words in commands:
        settings = words[1:] if words[0].text in _EXPORTS else words
        found = [read_assignment(command, word) for word in settings]
        assignments = [argument for argument in found if argument is not None]
        if len(assignments) == len(settings):
            variables.extend(assignments)
        elif any(launches(word) for word in words):
            environment.extend(variables)
            return words
    last = commands[-1] if commands else ()
    return last if len(commands) == 1 else ()
