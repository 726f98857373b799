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
    "import torch.multiprocessing as mp; ctx = mp.get_context('spawn')\nctx.Process(target=f)",
    "from multiprocessing import get_context\nget_context('spawn').Process(target=f).start()",
    "from multiprocessing import Process\nclass W(Process): pass",
    "from torch.multiprocessing import *\nspawn(f, nprocs=8)",
    "import torch; start = torch.multiprocessing.spawn\nstart(f, nprocs=8)",
    "from detectron2.engine import launch\nlaunch(f, 8)",
    "from accelerate.commands.launch import launch_command\nlaunch_command(args)",
    "import runpy\nrunpy.run_module('torch.distributed.run', run_name='__main__')",
    "from lightning.fabric import Fabric\nFabric(devices=8).launch()",
    "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(f)",
    "import ray; ray.init()\n@ray.remote(num_gpus=1)\ndef f(): pass",
    "import os\nos.system('git log && torchrun train.py')",
    "import os\nos.system('cd ' + d + '; torchrun train.py')",
    "import os\nos.system(f'{launcher} train.py')",
    "import os\nos.system('echo $(torchrun train.py)')",
    "import os, sys\nos.system(f'{sys.executable} -m torch.distributed.run train.py')",
    "import os\nos.system('')",
    "import subprocess\nsubprocess.run('torchrun train.py'.split())",
    "import subprocess\nsubprocess.run(['torchrun'] + args)",
    "import subprocess\nsubprocess.run(args=command)",
]
COUNTS = [
    "import os\nos.environ['WORLD_SIZE'] = os.environ['SLURM_NTASKS']",
    "from os import environ\nenviron['WORLD_SIZE'] = str(n)",
    "import os\nos.environ.update(RANK=r, WORLD_SIZE=n)",
    "import os\nos.environ.update({'WORLD_SIZE': n})",
    "import os\nos.environ.setdefault('WORLD_SIZE', '8')",
    "import torch.distributed as dist\ndist.init_process_group('nccl', world_size=n, rank=r)",
    "import os\nos.environ['WORLD_SIZE'] = os.environ.get('WORLD_SIZE', '8')",
    "import os\ninit_process_group(world_size=int(os.environ['SLURM_NTASKS']))",
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
    "import os\nos.environ['WORLD_SIZE'] = str(1)",
    "import os\ninit_process_group(world_size=int(os.environ['WORLD_SIZE']))",
    "import os\ninit_process_group(world_size=int(os.environ.get('WORLD_SIZE', 1)))",
    "import os\ninit_process_group(world_size=int(os.getenv('WORLD_SIZE', '1')))",
    "import ray\nray.init()",
    "import os\nos.system(f'mkdir -p {out}')\nos.system('rm -rf ' + out)",
    "import os\nos.system('tar xf {}'.format(x))\nos.system('cp %s %s' % (a, b))",
    "import os\nos.system('cd repo && git pull 2>&1 | tail -1 > log.txt; echo done')",
    "import os\nos.system(\"git log --format='%h|%an' -1\")",
    "import os\nos.system('rsync -a x \\\\\\n -q y')",
    "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])",
    "import os, sys\nos.system(f'{sys.executable} -m pip install x')\nos.system('pip install x')",
    "import subprocess\nsubprocess.check_output('git rev-parse HEAD'.split())",
    "import shlex, subprocess\nsubprocess.run(shlex.split('nvidia-smi -L'))",
    "import subprocess\nsubprocess.run(['aws', 's3', 'cp'] + files)",
    "import subprocess\nsubprocess.Popen(args=['tensorboard', '--logdir', x])",
    "import os\nos.system('CUDA_VISIBLE_DEVICES= sudo /usr/bin/nvidia-smi')",
    "import multiprocessing as mp\nctx = mp.get_context('spawn')\nq = ctx.Queue()",
    "from lightning.fabric import Fabric\nFabric(devices=1).launch()",
    "import runpy\nrunpy.run_module('mine')",
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
