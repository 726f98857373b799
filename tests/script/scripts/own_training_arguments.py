# Written as such scripts are.
# ruff: noqa: UP006, UP035, UP045
"""A vision-language model whose training arguments are a subclass with other defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Literal, Optional, Sequence

import transformers

LOCAL_RANK = None


@dataclass
class ModelArguments:
    model_name_or_path: Optional[str] = field(default="some/model")
    version: Optional[str] = field(default="v0")
    freeze_backbone: bool = field(default=False)
    tune_mm_mlp_adapter: bool = field(default=False)
    mm_vision_select_layer: Optional[int] = field(default=-1)
    mm_use_im_start_end: bool = True


@dataclass
class DataArguments:
    data_path: str = field(default=None, metadata={"help": "Path to the training data."})
    lazy_preprocess: bool = False
    image_aspect_ratio: str = "square"


@dataclass
class TrainingArguments(transformers.TrainingArguments):
    cache_dir: Optional[str] = field(default=None)
    optim: str = field(default="adamw_torch")
    per_device_train_batch_size: int = field(default=2)
    gradient_accumulation_steps: int = 16
    bf16: bool = True
    model_max_length: int = field(default=512, metadata={"help": "Longest sequence."})
    group_by_modality_length: bool = field(default=False)
    mm_projector_lr: Optional[float] = None
    lora_enable: bool = False
    lora_r: int = 64
    lora_targets: List[str] = field(default_factory=list)
    lora_bias: Literal["none", "all"] = "none"
    max_grad_norm = 0.3  # no annotation: not a field


def train(attn_implementation=None):
    parser = transformers.HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    return model_args, data_args, training_args


def collate(instances: Sequence[Dict]) -> Dict:
    return {"batch": list(instances)}


if __name__ == "__main__":
    train(attn_implementation="flash_attention_2")
