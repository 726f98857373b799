"""What a launch command says, with every word at its place."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from dsguard.launch.words import ShellSyntaxError, Word
from dsguard.model.fact import Fact, Origin, OriginKind
from dsguard.model.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dsguard.launch.jobs.job import Job
    from dsguard.model.tree import Document

__all__ = [
    "ONLY_TRAINING_ARGUMENTS",
    "Argument",
    "Command",
    "LaunchContext",
    "LaunchTrouble",
    "LauncherName",
    "ScriptArguments",
    "ShellSyntaxError",
    "TroubleKind",
    "Word",
]


JOB_FILE = "<job file>"
"""The name of the source of a command that is not known: only its job file is."""

ONLY_TRAINING_ARGUMENTS = (
    "per_device_train_batch_size",
    "per_device_eval_batch_size",
    "lr_scheduler_type",
    "max_grad_norm",
    "num_train_epochs",
    "gradient_checkpointing_kwargs",
)
"""Arguments that hardly any but HF Trainer's scripts take, on the command line or from a file."""


class Command(Struct, frozen=True):
    """One command: the words and the text they stand in.

    For words typed after ``--`` the source is the command line put together again
    (:func:`shlex.join`) and is not a file. In a script, a word may stand far from its
    neighbours: where the value of a variable is written. ``exported`` are the variables that the
    script gives to the command, as ``NAME=value`` words at the place where they are set.
    """

    source: Source
    words: tuple[Word, ...]
    exported: tuple[Word, ...] = ()

    @classmethod
    def of_words(cls, words: Sequence[str], name: str = "<launch command>") -> Command:
        """A command from an argument list, as a shell has already split it."""
        from shlex import quote

        text, placed = "", []
        for word in words:
            if text:
                text += " "
            quoted = quote(word)
            placed.append(Word(word, Span(len(text), len(text) + len(quoted))))
            text += quoted
        return cls(Source(name, text, is_file=False), tuple(placed))

    @classmethod
    def of_text(cls, text: str, name: str = "<launch command>") -> Command:
        """A command from one line as it would be typed in a shell.

        Redirections and comments are left out of the words.

        Raises:
            ShellSyntaxError: a quote is not closed, or the text holds more than one command.
        """
        from dsguard.launch.shell.split import split_commands

        commands = split_commands(text)
        if len(commands) > 1:
            second = commands[1][0].span.start
            raise ShellSyntaxError(f"more than one command, {len(commands)} of them", second)
        return cls(Source(name, text, is_file=False), commands[0] if commands else ())

    def locate(self, word: Word) -> Location:
        """Where a word stands."""
        return Location(self.source, word.span)

    @property
    def line(self) -> str:
        """The command as one line; what only a running shell could expand is left as written."""
        if not self.source.is_file:
            return self.source.text
        from shlex import quote

        return " ".join(quote(w.text) if w.known else w.text for w in self.words)

    @property
    def span(self) -> Span:
        """From the first word to the last one that stands behind it."""
        if not self.words:
            return Span(0, 0)
        first = self.words[0].span
        return Span(first.start, max([first.end, *(word.span.end for word in self.words)]))


class LauncherName(str, Enum):
    """The launchers that dsguard reads; ``unknown`` for a script named without one."""

    DEEPSPEED = "deepspeed"
    TORCHRUN = "torchrun"
    ACCELERATE = "accelerate"
    SRUN = "srun"
    MPI = "mpirun"
    PYTHON = "python"
    UNKNOWN = "unknown"


class Argument(NamedTuple):
    """One argument as given: ``--flag value``, ``--flag=value``, or a flag alone.

    ``name`` is the flag without leading dashes and with hyphens as underscores; ``flag`` is as
    typed (without ``=value``). ``value`` is None for a flag alone. ``known`` is False where
    the value holds something only the shell could expand. ``location`` covers flag and
    value, ``value_location`` the value alone (the flag where there is no value).

    A key of a job file is an argument too: ``kind`` is then ``jobfile``, ``flag`` the key as
    written, and ``name`` what its framework makes of it. So is a value that the framework fills
    in by itself: ``kind`` is ``default``, ``whose`` names the framework, and the places are those
    of the job.
    """

    name: str
    flag: str
    value: str | None
    location: Location
    value_location: Location
    known: bool = True
    kind: OriginKind = OriginKind.LAUNCH
    whose: str | None = None

    def origin(self, kind: OriginKind | None = None) -> Origin:
        """This argument as the origin of a value; ``kind`` where it is not the argument's own."""
        kind = kind or self.kind
        if kind is OriginKind.DEFAULT:
            return Origin(kind, whose=self.whose)
        if kind is OriginKind.JOBFILE:
            return Origin(kind, self.value_location)
        return Origin(kind, self.location, self.flag)


class ScriptArguments:
    """The arguments that the training script gets, read without knowing its parser.

    A word that starts with a dash and is no number opens an argument; the next word is its
    value unless that opens an argument too. The last of several equal names counts, as in
    argparse. ``positionals`` are the words that belong to no flag or cannot be told apart.
    ``unread`` says why a file of arguments is not among them; empty where none is missing.
    """

    def __init__(
        self,
        arguments: Sequence[Argument],
        positionals: Sequence[Word] = (),
        unread: str = "",
    ) -> None:
        self._arguments = tuple(arguments)
        self.positionals = tuple(positionals)
        self.unread = unread

    def __iter__(self) -> Iterator[Argument]:
        return iter(self._arguments)

    @property
    def complete(self) -> bool:
        """Whether every flag is in sight: False where a word such as ``$ARGS`` may hold more."""
        return not self.unread and all(word.known for word in self.positionals)

    def get(self, *names: str) -> Argument | None:
        """The last argument given under any of these names (underscore spelling), if any."""
        found = [a for a in self._arguments if a.name in names]
        return found[-1] if found else None


TroubleKind: TypeAlias = Literal[
    # The launcher's own command line.
    "unknown-option",
    "misspelled-option",
    "removed-option",
    "ambiguous-option",
    "ambiguous-script-argument",
    "missing-value",
    "unexpected-value",
    "bad-value",
    "conflicting-options",
    "no-script",
    "help-instead-of-launch",
    # deepspeed: hosts and devices.
    "hostfile-as-script",
    "hostfile-missing",
    "hostfile-elsewhere",
    "hostfile-syntax",
    "duplicate-host",
    "empty-hostfile",
    "env-file-syntax",
    "include-and-exclude",
    "filter-with-counts",
    "filter-syntax",
    "unknown-host",
    "unknown-slot",
    "nothing-selected",
    "num-nodes-without-hostfile",
    "num-nodes-above-hosts",
    "gpus-above-slots",
    "visible-devices-ignored",
    "node-rank-out-of-range",
    "unknown-backend",
    "backend-refuses-filter",
    "backend-needs-equal-slots",
    # accelerate launch.
    "accelerate-config-missing",
    "accelerate-config-syntax",
    "accelerate-config-key",
    "accelerate-config-value",
    "num-processes-missing",
    "machine-rank-missing",
    "processes-dropped",
    "processes-ignored",
    "pdsh-without-hostfile",
    "deepspeed-options-ignored",
    # The DeepSpeed part of Accelerate's config file.
    "config-file-with-values",
    "nvme-path-ignored",
    # srun and mpirun.
    "launcher-in-every-task",
    # Job files.
    "job-file-missing",
    "job-file-syntax",
    "job-key-ignored",
    "job-keys-conflict",
    "job-number-is-text",
    "job-override-refused",
    "deepspeed-without-launcher",
]
"""What can be wrong with a launch; rules pick troubles up by these words."""


class LaunchTrouble(Struct, frozen=True):
    """Something in the launch that the launcher refuses or reads otherwise than written.

    ``kind`` is what a rule picks up; ``message`` a clause without a full stop, with the
    numbers in it; ``refused`` says that the launcher, or the framework that reads the job file,
    stops with an error.
    """

    kind: TroubleKind
    message: str
    location: Location
    refused: bool


class LaunchContext(Struct, frozen=True):
    """One launch command, read.

    ``world_size`` counts all processes of the job; ``processes_per_node`` and ``nodes`` are
    its factors where the launcher has them. All are facts: known with the argument that says so, or
    unknown with the reason. ``script`` is the training script or, with ``module``, the
    module name after ``-m``. ``launcher_arguments`` are the launcher's own options under the
    names its parser stores them by, whatever spelling was typed. ``launcher_config`` is the
    config file of the launcher itself, such as the YAML of ``accelerate launch``. ``arguments``
    hold what the script's own files and framework add to the command line, which wins over them;
    ``jobs`` are those files, the launcher's own before the script's.
    """

    command: Command
    launcher: LauncherName
    launcher_location: Location
    environment: tuple[Argument, ...]
    script: Word | None
    module: bool
    arguments: ScriptArguments
    world_size: Fact
    nodes: Fact
    processes_per_node: Fact
    launcher_arguments: ScriptArguments
    troubles: tuple[LaunchTrouble, ...] = ()
    launcher_config: Document | None = None
    jobs: tuple[Job, ...] = ()

    @property
    def stands_alone(self) -> bool:
        """Whether this is a job file whose command is not known."""
        return self.command.source.name == JOB_FILE

    @property
    def inline_config(self) -> Document | None:
        """The DeepSpeed config that stands in a job file itself, where that is the one used.

        Of an Accelerate block it is the config that Accelerate builds; its places are in the YAML.
        """
        own = self.arguments.get("deepspeed")
        for job in reversed(self.jobs):
            if job.config is not None:
                used = own is None or own.value is None or own == job.config.argument
                return job.config.document if used else None
        return None

    @property
    def refusal(self) -> LaunchTrouble | None:
        """The first trouble that stops the launch; None where the processes start."""
        return next((trouble for trouble in self.troubles if trouble.refused), None)

    def variable(self, name: str) -> Argument | None:
        """The leading ``NAME=value`` word of the command that counts (the last one)."""
        found = [a for a in self.environment if a.flag == name]
        return found[-1] if found else None
