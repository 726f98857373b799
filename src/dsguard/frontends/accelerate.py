"""An own training loop prepared by ``Accelerator`` with a DeepSpeed config.

Sources: accelerate/utils/dataclasses.py (``DeepSpeedPlugin``) and accelerate/accelerator.py
(``__init__``, ``_prepare_deepspeed``).
"""

from __future__ import annotations

from packaging.version import Version

from dsguard.frontends.base import FrontEndName, Setting
from dsguard.frontends.transformers import FILLED
from dsguard.model.fact import Fact, Known, Origin, OriginKind, Unknown

NOT_FILLED = frozenset({"optimizer.params.betas", "optimizer.params.eps"})
"""What the Trainer fills and ``prepare()`` does not: DummyOptim has only lr and weight_decay."""


CONFIG_WINS_SINCE = Version("0.23.0")
"""Before, the ``Accelerator``'s own count was written over the config's. From this release the
engine counts by the config; ``accumulate()`` follows it since 1.8.0, with a warning."""


STEPS_SINCE = Version("1.8.0")
"""From this release ``accelerator.backward`` outside ``accumulate()`` always steps the engine."""


class Accelerate:
    """Accelerate's own loop: numbers in the config win, ``"auto"`` is filled in ``prepare()``."""

    name = FrontEndName.ACCELERATE
    title = "Accelerate"
    strict_json = True
    stops_at_auto = True

    def __init__(self, version: Version | None = None) -> None:
        """``version`` is the release that runs; None stands for the newest."""
        self._version = version

    def fills(self, key: str) -> bool:
        """Whether the plugin or ``prepare()`` replaces ``"auto"`` under this key."""
        return key in FILLED and key not in NOT_FILLED

    def settle(self, setting: Setting) -> Fact | None:
        """The written number wins; an absent accumulation count becomes 1."""
        if setting.key == "gradient_accumulation_steps" and not self._config_wins:
            if setting.handed is not None:
                lost = setting.written is not None and setting.value != setting.handed.value
                losers = (setting.written,) if setting.written and lost else ()
                return Known(setting.handed.value, setting.handed.origin, losers)
            return Unknown(
                f"Accelerate {self._version} takes the count from Accelerator(), not the config",
                setting.losers,
            )
        if setting.written is None:
            if setting.key == "gradient_accumulation_steps":
                plugin = Origin(OriginKind.DEFAULT, whose="Accelerate's DeepSpeedPlugin")
                return Known(1, plugin, setting.losers)
            return None
        if setting.is_auto:
            if setting.key == "train_batch_size":
                return None
            if setting.filled is not None:
                return setting.filled
            if setting.key == "gradient_clipping":
                return Unknown(
                    'gradient_clipping is "auto": Accelerate clips at 1.0 unless accelerate launch '
                    "or the script's DeepSpeedPlugin says otherwise",
                    setting.losers,
                )
            if setting.handed is not None:
                return Known(setting.handed.value, setting.handed.origin)
            return Unknown(f'{setting.key} is "auto": Accelerate fills it when the script runs')
        return Known(setting.written.value, setting.written.origin, setting.losers)

    @property
    def steps_the_engine(self) -> bool:
        """Whether ``accelerator.backward`` decides when the engine steps.

        Before, the engine counted the calls by itself.
        """
        return self._version is None or self._version >= STEPS_SINCE

    @property
    def _config_wins(self) -> bool:
        return self._version is None or self._version >= CONFIG_WINS_SINCE
