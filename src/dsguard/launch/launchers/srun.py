"""``srun``: a number of tasks; a launcher inside it counts its own processes.

Options, and the variables that stand in for them, as the manual page of ``srun`` (Slurm 24.05)
lists them. An option it does not list refuses nothing, but leaves the counts unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import LaunchContext, LauncherName
from dsguard.launch.counts import Counts, default, product
from dsguard.launch.launchers.tasks import start_tasks
from dsguard.launch.options import getopt
from dsguard.launch.scan import Scan
from dsguard.launch.scan_getopt import scan_getopt
from dsguard.model.fact import Candidate, Fact, Known, Unknown

if TYPE_CHECKING:
    from dsguard.launch.call import Call

OPTIONS = getopt(
    "-A|--account: -B|--extra-node-info: -c|--cpus-per-task: -C|--constraint: -d|--dependency: "
    "-D|--chdir: -e|--error: -E|--preserve-env -G|--gpus: -h|--help -H|--hold -i|--input: "
    "-I|--immediate:: -J|--job-name: -k|--no-kill:: -K|--kill-on-bad-exit:: -l|--label "
    "-L|--licenses: -m|--distribution: -M|--clusters: -n|--ntasks: -N|--nodes: -o|--output: "
    "-O|--overcommit -p|--partition: -q|--qos: -Q|--quiet -r|--relative: -s|--oversubscribe "
    "-S|--core-spec: -t|--time: -T|--threads: -u|--unbuffered -v|--verbose -V|--version "
    "-w|--nodelist: -W|--wait: -x|--exclude: -X|--disable-status -Z|--no-allocate "
    "--accel-bind: --acctg-freq: --bb: --bbf: --bcast:: --begin: --bcast-exclude: "
    "--cluster-constraint: --comment: --compress:: --container: --container-id: --contiguous "
    "--cores-per-socket: --cpu-bind: --cpu-freq: --cpus-per-gpu: --deadline: --delay-boot: "
    "--epilog: --exact --exclusive:: --export: --export-file: --external-launcher:: --extra: "
    "--gid: --gpu-bind: --gpu-freq: --gpus-per-node: --gpus-per-socket: --gpus-per-task: --gres: "
    "--gres-flags: --het-group: --hint: --interactive --jobid: --mail-type: --mail-user: "
    "--mcs-label: --mem: --mem-bind: --mem-per-cpu: --mem-per-gpu: --mincpus: --mpi: "
    "--msg-timeout: --multi-prog --network: --nice:: --nodefile: --ntasks-per-core: "
    "--ntasks-per-gpu: --ntasks-per-node: --ntasks-per-socket: --oom-kill-step:: --open-mode: "
    "--overlap --prefer: --priority: --profile: --prolog: --propagate:: --pty:: "
    "--quit-on-interrupt --reboot --reservation: --resv-ports:: --segment: --send-libs:: "
    "--signal: --slurmd-debug: --sockets-per-node: --spread-job --stepmgr --switches: "
    "--task-epilog: --task-prolog: --test-only --thread-spec: --threads-per-core: --time-min: "
    "--tmp: --treewidth: --tres-bind: --tres-per-task: --uid: --usage --use-min-nodes "
    "--wait-for-children --wckey: --whole --x11::"
)


def read(call: Call) -> LaunchContext:
    """Read the words after ``srun``."""
    scan = scan_getopt(call.command, call.words, OPTIONS)
    tasks = _tasks(scan, Scan(call.environment, None, ()))
    return start_tasks(call, LauncherName.SRUN, scan, tasks, _not_read(tasks.world_size))


def _tasks(scan: Scan, variables: Scan) -> Counts:
    """``--ntasks``, or the tasks of a node times the nodes.

    What is not typed comes from the variables that ``sbatch`` sets; without them, the job is
    not known.
    """
    if scan.strange is not None:
        return Counts.unknown(f"dsguard does not know the srun option {scan.strange.text}")
    absent = "the number of {} is not in the srun command and comes from its Slurm job"
    job = variables.integer("SLURM_JOB_NUM_NODES") or variables.integer("SLURM_NNODES")
    nodes = scan.integer("nodes") or job or Unknown(absent.format("nodes"))
    per_node = scan.integer("ntasks_per_node") or variables.integer("SLURM_NTASKS_PER_NODE")
    total = scan.integer("ntasks")
    of_job = variables.integer("SLURM_NTASKS") or variables.integer("SLURM_NPROCS")
    if total is None and of_job is not None:
        return _tasks_of_job(scan, nodes, per_node, of_job)
    if per_node is None and total is None and job is not None and not scan.has("cpus_per_task"):
        per_node = default(1, "srun")
    shared = per_node or Unknown(absent.format("tasks per node"))
    if total is None:
        return Counts.of(nodes, shared)
    if not scan.has("ntasks_per_node"):
        shared = _evenly(total, nodes) or Unknown(absent.format("tasks per node"))
    return Counts(nodes, shared, total)


def _tasks_of_job(scan: Scan, nodes: Fact, per_node: Fact | None, total: Fact) -> Counts:
    """As many tasks as the job has, unless the command asks for another number of them."""
    shared = _evenly(total, nodes) or per_node or Unknown("srun spreads the tasks of the job")
    if not scan.has("nodes") and not scan.has("ntasks_per_node"):
        return Counts(nodes, shared, total)
    asked = product(nodes, per_node or shared)
    if isinstance(asked, Known) and isinstance(total, Known) and asked.value == total.value:
        return Counts(nodes, per_node or shared, total)
    return Counts.unknown("srun is asked for other tasks than those of its Slurm job")


def _evenly(total: Fact, nodes: Fact) -> Known | None:
    """The tasks of each node, where every node gets as many."""
    if not isinstance(total, Known) or not isinstance(nodes, Known):
        return None
    if not 0 < nodes.value <= total.value:
        return None
    share, rest = divmod(total.value, nodes.value)
    return None if rest else Known(share, total.origin)


def _not_read(tasks: Fact) -> Unknown:
    """Nobody but Lightning reads Slurm's count of tasks, so it is not the world size."""
    if not isinstance(tasks, Known):
        return Unknown(tasks.reason if isinstance(tasks, Unknown) else "srun's tasks conflict")
    reason = (
        f"srun starts {tasks.value} tasks, but neither PyTorch nor DeepSpeed reads Slurm's "
        "variables; RANK and WORLD_SIZE must be set for each task"
    )
    return Unknown(reason, (Candidate(tasks.value, tasks.origin),))
