"""What a script's ``DeepSpeedPlugin`` changes in the config of Accelerate's own options.

Source: accelerate/utils/dataclasses.py (``DeepSpeedPlugin.__post_init__``): what the plugin is
given counts before what ``accelerate launch`` exports, from which the rest of the config is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.script_config import with_changes
from dsguard.frontends.requests import PLUGIN, Requests, is_given
from dsguard.script.declaration import Constant, FromArgument, Unreadable
from dsguard.script.loop.description import Config, DictEntry

if TYPE_CHECKING:
    from dsguard.launch.context import LaunchContext
    from dsguard.model.tree import Document
    from dsguard.script.script import Script, SetupCall


def with_plugin(document: Document, launch: LaunchContext, script: Script) -> Document:
    """The config that the options make, as far as the script's plugin leaves them the word.

    A script with a plugin that is given a config is left alone, as nothing is built then.
    """
    calls = [call for call in script.setups if call.framework == "DeepSpeedPlugin"]
    if not calls or any(is_given(call, "hf_ds_config") for call in calls):
        return document
    changes = []
    for key, name in PLUGIN.items():
        path = tuple(key.split("."))
        if all(call.complete and not is_given(call, name) for call in calls):
            continue
        changes.append((path, _entry(path[-1], name, calls, script)))
    config = Config(calls[0].location, changes=tuple(changes))
    return with_changes(document, config, Requests(launch, script))


def _entry(key: str, name: str, calls: list[SetupCall], script: Script) -> DictEntry:
    """What the one call is given; anything else is only known when the script runs."""
    call = calls[0]
    where = call.places.get(name, call.location)
    value = call.keywords.get(name, Constant(None))
    stored = isinstance(value, FromArgument) and value.name in script.reassigned
    # A plugin that is given 0 for clipping writes no key.
    left_out = value in (Constant(None), Constant(0), Constant(0.0)) and name != "zero_stage"
    if len(calls) > 1 or stored or left_out or isinstance(value, Unreadable):
        value = Unreadable("the script's DeepSpeedPlugin decides it")
    return DictEntry(key, where, value, where, name)
