"""HF Trainer, TRL and everything else that ends in ``TrainingArguments(deepspeed=…)``.

Sources: transformers/integrations/deepspeed.py (``HfTrainerDeepSpeedConfig``: ``fill_match``
compares, ``fill_only`` fills) and accelerate/utils/dataclasses.py (``DeepSpeedPlugin``).
"""

from __future__ import annotations

from dsguard.frontends.base import FrontEndName, Setting
from dsguard.model.fact import Conflict, Fact, Known, Unknown

COMPARED = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "train_batch_size": "world size x per_device_train_batch_size x gradient_accumulation_steps",
    "gradient_clipping": "max_grad_norm",
    "optimizer.params.lr": "learning_rate",
    "optimizer.params.betas": "adam_beta1, adam_beta2",
    "optimizer.params.eps": "adam_epsilon",
    "optimizer.params.weight_decay": "weight_decay",
    "scheduler.params.warmup_max_lr": "learning_rate",
    "scheduler.params.warmup_num_steps": "warmup_steps",
    "scheduler.params.total_num_steps": "max_steps",
    "fp16.enabled": "fp16",
    "bf16.enabled": "bf16",
}
"""Keys the Trainer compares with its own argument when the config gives a number, and fills
when it says ``"auto"``: dotted key → TrainingArguments name."""

FILLED = frozenset(
    {
        *COMPARED,
        "scheduler.params.warmup_min_lr",
        "steps_per_print",
        "zero_optimization.stage",
        "zero_optimization.offload_optimizer.device",
        "zero_optimization.offload_optimizer.nvme_path",
        "zero_optimization.offload_param.device",
        "zero_optimization.offload_param.nvme_path",
        "zero_optimization.stage3_gather_16bit_weights_on_model_save",
        "zero_optimization.reduce_bucket_size",
        "zero_optimization.stage3_prefetch_bucket_size",
        "zero_optimization.stage3_param_persistence_threshold",
    }
)
"""Every key whose ``"auto"`` the Trainer or Accelerate's plugin replaces; any other ``"auto"``
left in the config is a ValueError (``not found in kwargs``)."""


_OWN = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}
"""What the Trainer does by itself, whether or not the config has the key."""


class Transformers:
    """HF Trainer: ``"auto"`` is filled from TrainingArguments, other values are compared."""

    name = FrontEndName.TRANSFORMERS
    title = "HF Trainer"
    strict_json = True
    stops_at_auto = True

    def fills(self, key: str) -> bool:
        """Whether the Trainer or Accelerate's plugin replaces ``"auto"`` under this key."""
        return key in FILLED

    def settle(self, setting: Setting) -> Fact | None:
        """``"auto"`` takes the argument; a number that differs from it stops ``train()``.

        The Trainer sizes its own loader and counts accumulation by itself, so an absent key
        leaves those two to TrainingArguments; ``train_batch_size`` follows from them.
        """
        asked = setting.asked
        if setting.written is None or setting.is_auto:
            if setting.key == "train_batch_size":
                return None
            argument = COMPARED.get(setting.key)
            if setting.written is None and setting.key not in _OWN:
                return None
            if asked is not None:
                return Known(asked.value, asked.origin)
            missing = 'is "auto"' if setting.is_auto else "is not in the config"
            whose = f"TrainingArguments ({argument})" if argument else "the trainer"
            return Unknown(f"{setting.key} {missing}: {whose} decides")
        if asked is not None and setting.key in COMPARED and not setting.agree:
            return Conflict((setting.written, asked))
        return Known(setting.written.value, setting.written.origin, setting.losers)
