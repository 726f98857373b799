"""One call of a launcher: what its reader gets, and what it makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.launch.arguments import read_arguments
from dsguard.launch.context import (
    Argument,
    Command,
    LaunchContext,
    LauncherName,
    LaunchTrouble,
    ScriptArguments,
    Word,
)
from dsguard.launch.counts import Counts
from dsguard.launch.environ import NO_ENVIRON, Environ
from dsguard.model.fact import Known, Origin, OriginKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from packaging.version import Version

    from dsguard.launch.scan import Scan
    from dsguard.model.source import Location
    from dsguard.model.tree import Document


class Surroundings(Struct, frozen=True):
    """What a launch depends on besides its words.

    ``folder`` is where the command runs. ``hostfile`` is dsguard's own ``--hostfile`` and wins
    over the command's. ``devices_per_node`` is dsguard's ``--gpus-per-node``: how many devices a
    machine has, where the launcher would count them. ``environ`` is the shell that the command
    is typed in; nothing of it is known by default. ``deepspeed`` is the release whose launcher
    is meant, None for the newest.
    """

    folder: Path
    hostfile: Path | None = None
    devices_per_node: int | None = None
    environ: Environ = NO_ENVIRON
    deepspeed: Version | None = None

    @property
    def devices(self) -> Known | None:
        """``devices_per_node`` as a fact."""
        if self.devices_per_node is None:
            return None
        return Known(self.devices_per_node, Origin(OriginKind.OPTION, argument="--gpus-per-node"))


class Call(Struct, frozen=True):
    """The words of one launcher, from its name on, prefixes taken off.

    ``program`` is the word that names the launcher, ``words`` what follows it. ``nested`` reads
    the words of a command that this launcher starts.
    """

    command: Command
    program: Word
    words: tuple[Word, ...]
    environment: tuple[Argument, ...]
    surroundings: Surroundings
    nested: Callable[[tuple[Word, ...]], LaunchContext]

    @property
    def location(self) -> Location:
        """Where the launcher is named."""
        return self.command.locate(self.program)

    def with_words(self, program: Word, words: Sequence[Word]) -> Call:
        """The same call seen by another reader: ``python -m torch.distributed.run``."""
        return Call(
            self.command, program, tuple(words), self.environment, self.surroundings, self.nested
        )

    def variable(self, name: str) -> Argument | None:
        """The leading ``NAME=value`` word that counts."""
        return next((a for a in reversed(self.environment) if a.flag == name), None)

    def context(
        self,
        launcher: LauncherName,
        scan: Scan,
        counts: Counts,
        *,
        module: bool = False,
        troubles: Sequence[LaunchTrouble] = (),
        config: Document | None = None,
    ) -> LaunchContext:
        """What the launch says, once its options are scanned and its processes counted.

        A launcher that stops starts nothing: its counts are unknown, for that reason.
        """
        everything = (*scan.troubles, *troubles)
        refusal = next((trouble for trouble in everything if trouble.refused), None)
        if refusal is not None:
            counts = Counts.unknown(f"{launcher.value} stops: {refusal.message}")
        return LaunchContext(
            command=self.command,
            launcher=launcher,
            launcher_location=self.location,
            environment=self.environment,
            script=scan.script,
            module=module,
            arguments=read_arguments(self.command, scan.rest),
            world_size=counts.world_size,
            nodes=counts.nodes,
            processes_per_node=counts.processes_per_node,
            launcher_arguments=ScriptArguments(scan.arguments),
            troubles=everything,
            launcher_config=config,
        )
