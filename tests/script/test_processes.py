"""What in a script has a say in how many ranks there are."""

from __future__ import annotations

import pytest

from dsguard.model.source import Source
from dsguard.script.read import read_script

STARTS = [
    "import torch.multiprocessing as mp\nmp.spawn(f, nprocs=8)",
    "from torch.multiprocessing import spawn\nspawn(f)",
    "import multiprocessing\nmultiprocessing.Process(target=f).start()",
    "import torch.multiprocessing as mp\nmp.get_context('spawn').Process(target=f).start()",
    "from accelerate import notebook_launcher\nnotebook_launcher(f, num_processes=8)",
    "import subprocess\nsubprocess.run(['torchrun', '--nproc_per_node', '8', 'train.py'])",
    "import subprocess, sys\nsubprocess.Popen([sys.executable, 'worker.py'])",
    "import os\nos.system('torchrun --nproc_per_node 8 train.py')",
    "import os\nos.execvp('deepspeed', args)",
    "import submitit\nsubmitit.AutoExecutor(folder='l').submit(f)",
    "from ray.train.torch import TorchTrainer\nTorchTrainer(f).fit()",
    "import torch.distributed.run as r\nr.main(['train.py'])",
]
COUNTS = [
    "import os\nos.environ['WORLD_SIZE'] = os.environ['SLURM_NTASKS']",
    "from os import environ\nenviron['WORLD_SIZE'] = str(n)",
    "import os\nos.environ.update(RANK=r, WORLD_SIZE=n)",
    "import os\nos.environ.update({'WORLD_SIZE': n})",
    "import os\nos.environ.setdefault('WORLD_SIZE', '8')",
    "import torch.distributed as dist\ndist.init_process_group('nccl', world_size=n, rank=r)",
]
NEITHER = [
    "import torch\nprint(torch.ones(1))",
    "import os\nn = int(os.environ.get('WORLD_SIZE', 1))",
    "import os\nos.environ['WORLD_SIZE'] = '1'\nos.environ.setdefault('WORLD_SIZE', '1')",
    "import os\nos.environ.update(RANK='0', WORLD_SIZE='1')\nos.environ.update(A='2')",
    "import torch.distributed as dist\ndist.init_process_group('nccl')",
    "import torch.distributed as dist\ndist.init_process_group('gloo', world_size=1, rank=0)",
    "import subprocess\nsubprocess.check_output(['git', 'rev-parse', 'HEAD'])",
    "import os\nos.system('nvidia-smi')\nos.system(f'git log {x}')",
    "import multiprocessing\nmultiprocessing.cpu_count()\nmultiprocessing.Pool(4).map(f, x)",
    "class Process: pass\nProcess()\nrun = spawn = print\nrun(1)\nspawn(2)",
]


@pytest.mark.parametrize("text", STARTS)
def test_what_starts_processes(text: str) -> None:
    ranks = read_script(Source("train.py", text)).ranks
    assert ranks.starts is not None
    assert ranks.starts.startswith("train.py:2 ")


@pytest.mark.parametrize("text", COUNTS)
def test_what_says_how_many_there_are(text: str) -> None:
    ranks = read_script(Source("train.py", text)).ranks
    assert ranks.starts is None
    assert ranks.counts is not None


@pytest.mark.parametrize("text", NEITHER)
def test_an_ordinary_script_says_nothing(text: str) -> None:
    ranks = read_script(Source("train.py", text)).ranks
    assert (ranks.starts, ranks.counts) == (None, None)


def test_a_module_beside_the_script_counts_too() -> None:
    modules = {
        "dist": "import os\ndef up():\n    os.environ['WORLD_SIZE'] = os.environ['SLURM_NTASKS']\n",
        "log": "import subprocess\nsubprocess.run(['./report.sh'])\n",
    }

    def find(name: str) -> Source | None:
        return Source(f"{name}.py", modules[name]) if name in modules else None

    ranks = read_script(Source("train.py", "import dist, log\ndist.up()\n"), find).ranks
    assert ranks.counts == "dist.py:3 sets WORLD_SIZE"
    assert ranks.starts is None
