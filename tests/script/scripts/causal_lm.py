# Written as such scripts are.
# ruff: noqa: UP045, PTH100, RUF059
"""A language model with the HF Trainer: three dataclasses, or one JSON file with all values."""

import os
import sys
from dataclasses import dataclass, field
from typing import Optional

from transformers import HfArgumentParser, Trainer, TrainingArguments


@dataclass
class ModelArguments:
    model_name_or_path: Optional[str] = field(
        default=None, metadata={"help": "The checkpoint to start from."}
    )
    model_revision: str = field(default="main", metadata={"help": "branch, tag or commit"})
    use_fast_tokenizer: bool = field(default=True)
    trust_remote_code: bool = field(default=False)
    torch_dtype: Optional[str] = field(
        default=None, metadata={"choices": ["auto", "bfloat16", "float16", "float32"]}
    )

    def __post_init__(self):
        if self.model_name_or_path is None:
            self.model_revision = "none"


@dataclass
class DataTrainingArguments:
    dataset_name: str = field(metadata={"help": "required, as it has no default"})
    max_train_samples: Optional[int] = field(default=None)
    block_size: Optional[int] = field(default=None)
    validation_split_percentage: Optional[int] = field(default=5)
    streaming: bool = field(default=False)
    keep_linebreaks: bool = field(default=True)
    columns: list[str] = field(default_factory=lambda: ["text"])


def main():
    parser = HfArgumentParser((ModelArguments, DataTrainingArguments, TrainingArguments))
    if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
        model_args, data_args, training_args = parser.parse_json_file(
            json_file=os.path.abspath(sys.argv[1])
        )
    else:
        model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    training_args.remove_unused_columns = False
    trainer = Trainer(model=None, args=training_args)
    trainer.train()


if __name__ == "__main__":
    main()
