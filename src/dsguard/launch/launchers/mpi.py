"""``mpirun`` and ``mpiexec``: a number of ranks; a launcher inside counts its own processes.

The options are those that Open MPI 4 and 5, MPICH (Hydra) and Intel MPI document. One that is
not listed refuses nothing, but leaves the counts unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import LaunchContext, LauncherName
from dsguard.launch.counts import Counts
from dsguard.launch.launchers.tasks import start_tasks
from dsguard.launch.options import getopt
from dsguard.launch.scan_getopt import scan_getopt
from dsguard.model.fact import Known, Unknown

if TYPE_CHECKING:
    from dsguard.launch.call import Call
    from dsguard.launch.scan import Scan

OPTIONS = getopt(
    "-n|-np|--n|--np|-c: -N|-npernode|--npernode|-ppn|--ppn|-perhost|-grr|--map-by-ppn: "
    "-H|-host|--host|-hosts|--hosts: -hostfile|--hostfile|-machinefile|--machinefile|-f: "
    "-x: -mca|--mca:+ -gmca|--gmca:+ -pmixmca|--pmixmca:+ -prtemca|--prtemca:+ "
    "-genv|--genv:+ -env|--env:+ -genvlist|--genvlist: -envlist: -genvall|--genvall -envall "
    "-genvnone -envnone -map-by|--map-by: -rank-by|--rank-by: -bind-to|--bind-to: -iface|--iface: "
    "-launcher|--launcher: -bootstrap|--bootstrap: -wdir|--wdir|-wd|--wd: --path: --prefix: "
    "-prefix: --output-filename: --output: -outfile-pattern: -errfile-pattern: --timeout: --app: "
    "-configfile: -rf|--rankfile: --display: --personality: -oversubscribe|--oversubscribe "
    "-nooversubscribe|--nooversubscribe -nolocal|--nolocal --allow-run-as-root "
    "-report-bindings|--report-bindings -display-map|--display-map --display-allocation "
    "-tag-output|--tag-output -timestamp-output|--timestamp-output -bynode|--bynode "
    "-byslot|--byslot -bind-to-core|--bind-to-core -bind-to-none|--bind-to-none "
    "-l|-prepend-rank|--prepend-rank -v|-verbose|--verbose -q|--quiet -h|--help -V|--version "
    "-s|--preload-binary -tv|-tune:"
)


def read(call: Call) -> LaunchContext:
    """Read the words after ``mpirun``."""
    scan = scan_getopt(call.command, call.words, OPTIONS)
    tasks = _ranks(scan)
    return start_tasks(call, LauncherName.MPI, scan, tasks, tasks.world_size)


def _ranks(scan: Scan) -> Counts:
    """``-np N`` ranks in all; without it the count comes from the hosts' slots."""
    if scan.strange is not None:
        return Counts.unknown(f"dsguard does not know the mpirun option {scan.strange.text}")
    if any(word.text == ":" for word in scan.rest):
        return Counts.unknown("mpirun starts several programs")
    total = scan.integer("n") or Unknown(
        "without -np, mpirun counts the slots of the hosts it runs on"
    )
    per_node = scan.integer("npernode") or Unknown("mpirun is not told how many ranks a node gets")
    nodes = Unknown("mpirun is not told how many nodes there are")
    if isinstance(total, Known) and isinstance(per_node, Known) and per_node.value > 0:
        full, rest = divmod(total.value, per_node.value)
        if not rest:
            return Counts(Known(full, per_node.origin), per_node, total)
    return Counts(nodes, per_node, total)
