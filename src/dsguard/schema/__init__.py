"""The DeepSpeed config: which keys exist, what they mean, which values are taken.

One module declares each block. :mod:`~dsguard.schema.validate` says what DeepSpeed does with a
config, :mod:`~dsguard.schema.keys` looks keys up, and :mod:`~dsguard.schema.sniff` tells DeepSpeed
configs from other JSON files. Import from these modules; this one loads nothing by itself.

The modules of the blocks are imported when a config holds their key: the annotations of
:class:`~dsguard.schema.config.Config` name them as attributes of this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        module = f"{__name__}.{name}"
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise AttributeError(name) from None
