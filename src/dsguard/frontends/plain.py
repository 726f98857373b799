"""A script that hands the config to ``deepspeed.initialize`` itself.

Nothing of the command line is merged into the config: a script's own
``--gradient_accumulation_steps`` or ``--lr`` matter only if the script copies them
(deepspeed/__init__.py, ``initialize`` and ``_add_core_arguments``).
"""

from __future__ import annotations

from dsguard.frontends.base import FrontEndName, Setting
from dsguard.model.fact import Fact, Known, Unknown


class Plain:
    """DeepSpeed without a trainer: the config wins, silently."""

    name = FrontEndName.PLAIN
    title = "plain DeepSpeed"
    strict_json = False
    stops_at_auto = False

    def fills(self, key: str) -> bool:
        """Nobody fills anything."""
        return False

    def settle(self, setting: Setting) -> Fact | None:
        """The written value counts; the command line is never looked at."""
        if setting.written is None:
            return None
        if setting.is_auto:
            return Unknown(
                f'{setting.key} is "auto", which a plain DeepSpeed script does not fill',
                setting.losers,
            )
        return Known(setting.written.value, setting.written.origin, setting.losers)
