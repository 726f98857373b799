"""Keys and passwords of a launch are not kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsguard.launch.context import Command
from dsguard.launch.secrets import line_without_secrets
from tests.conftest import Dsguard

HIDDEN = [
    ("WANDB_API_KEY=s3cret deepspeed train.py", "WANDB_API_KEY=*** deepspeed train.py"),
    ("env HF_TOKEN=hf_z torchrun t.py", "env HF_TOKEN=*** torchrun t.py"),
    ("t.py --hub_token hf_zzz --lr 1", "t.py --hub_token *** --lr 1"),
    ("t.py --hub-token=hf_zzz", "t.py --hub-token=***"),
    ("t.py '--hub_token=hf zzz' x", "t.py --hub_token=*** x"),
    ("t.py --db-password 1234", "t.py --db-password ***"),
    ("t.py +logger.apiKey=abc", "t.py +logger.apiKey=***"),
    ("t.py hub.token=abc", "t.py hub.token=***"),
    ("AWS_SECRET_ACCESS_KEY=a t.py", "AWS_SECRET_ACCESS_KEY=*** t.py"),
    ("t.py --credentials 'a b'", "t.py --credentials ***"),
    ("srun --export=ALL,HF_TOKEN=hf_z,A=1 t.py", "srun '--export=ALL,HF_TOKEN=***,A=1' t.py"),
    ("bash -c 'cd x; HF_TOKEN=hf_z t.py --api_key k 7'",
     "bash -c 'cd x; HF_TOKEN=*** t.py --api_key *** 7'"),
    ("bash -c 't.py --push_to_hub --hub_token hf_z'",
     "bash -c 't.py --push_to_hub --hub_token ***'"),
    ("bash -lc 'HF_TOKEN=hf deepspeed t.py'", "bash -lc 'HF_TOKEN=*** deepspeed t.py'"),
    ("bash -c 'mpirun -x HF_TOKEN=hf_z t.py'", "bash -c 'mpirun -x HF_TOKEN=*** t.py'"),
    ("sbatch --wrap='HF_TOKEN=hf_z t.py'", "sbatch '--wrap=HF_TOKEN=*** t.py'"),
    ("srun --export=HF_TOKEN=hf_z,ALL t.py", "srun '--export=HF_TOKEN=***,ALL' t.py"),
    ("t.py --env '{\"HF_TOKEN\": \"hf_z\"}'", "t.py --env '{\"HF_TOKEN\": ***}'"),
]  # fmt: skip
KEPT = [
    "t.py --tokenizer name --max_tokens 12 --max_token 12 --token_dropout 0.1",
    "t.py --pad_token '<pad>' --eos_token '</s>' --mask_token [MASK] --image_token 256",
    "t.py --use_auth_token true --use_auth_token --lr 1e-4 --tokens-per-batch x",
    "t.py --password-file p --AWS_ACCESS_KEY_ID i --secret_name n --primary_key k",
    "CUDA_VISIBLE_DEVICES=0,1 deepspeed --include a:0,1 t.py --deepspeed_config ds.json",
    "bash -c 'A=1 t.py --lr 1  # two  blanks'",
    "t.py --name=hub_token abc",
    "t.py --pad_token EOS --eos_token eos --special_token '|im|' --secret_dim 4",
    "accelerate launch --use_auth_token train.py",
]


@pytest.mark.parametrize(("text", "kept"), HIDDEN)
def test_a_secret_is_hidden(text: str, kept: str) -> None:
    assert line_without_secrets(Command.of_text(text)) == kept


@pytest.mark.parametrize("text", KEPT)
def test_the_rest_is_as_it_was_written(text: str) -> None:
    assert line_without_secrets(Command.of_text(text)) == text


def test_contracts_and_reports_hold_none(dsguard: Dsguard, tmp_path: Path) -> None:
    (tmp_path / "k.json").write_text('{"train_micro_batch_size_per_gpu": 2}')
    (tmp_path / "train.py").write_text("")
    launch = (
        "WANDB_API_KEY=s3cret torchrun --nproc_per_node=2 train.py --hub_token hf_zzz "
        "--deepspeed_config k.json"
    )
    (tmp_path / "run.sh").write_text(f"{launch}\n")
    for words in (f"-- {launch}", "run.sh"):
        dsguard(f"check -o json=report.json --write-contract contract.json {words}", tmp_path)
        for name in ("report.json", "contract.json"):
            text = (tmp_path / name).read_text()
            assert "s3cret" not in text
            assert "hf_zzz" not in text
        assert "--hub_token ***" in json.loads((tmp_path / "contract.json").read_text())["launch"]
