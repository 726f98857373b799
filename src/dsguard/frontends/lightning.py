"""Lightning's ``DeepSpeedStrategy(config=…)``.

Source: lightning/pytorch/strategies/deepspeed.py (``_format_config``,
``_format_batch_size_and_grad_accum_config``). The strategy knows no ``"auto"``.
"""

from __future__ import annotations

from dsguard.frontends.base import FrontEndName, Setting
from dsguard.model.fact import Conflict, Fact, Known, Unknown


class Lightning:
    """Lightning: the Trainer owns accumulation, the config owns the rest."""

    name = FrontEndName.LIGHTNING
    title = "Lightning"
    strict_json = True
    stops_at_auto = False

    def fills(self, key: str) -> bool:
        """Nothing: ``"auto"`` reaches DeepSpeed as it stands."""
        return False

    def settle(self, setting: Setting) -> Fact | None:
        """Absent batch values come from the Trainer and the DataLoader."""
        if setting.written is None:
            if setting.handed is not None:
                return Known(setting.handed.value, setting.handed.origin)
            if setting.key == "gradient_accumulation_steps":
                return Unknown("the Lightning Trainer's accumulate_grad_batches decides")
            if setting.key == "train_micro_batch_size_per_gpu":
                return Unknown("Lightning takes the micro batch from the train DataLoader")
            if setting.key == "gradient_clipping":
                return Unknown("the Lightning Trainer's gradient_clip_val decides")
            return None
        if setting.key == "gradient_accumulation_steps":
            return Conflict((setting.written, *setting.losers))
        if setting.is_auto:
            return Unknown(f'{setting.key} is "auto", which Lightning does not fill')
        return Known(setting.written.value, setting.written.origin, setting.losers)
