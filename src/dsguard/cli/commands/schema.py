"""``dsguard schema``."""

from __future__ import annotations

import json

from packaging.version import Version

from dsguard.cli import options
from dsguard.cli.output import emit_utf8, wrong_usage
from dsguard.exporting import json_schema
from dsguard.facts.target import TargetError, resolve_target


def schema(target: options.Target = None) -> None:
    """Write the JSON Schema of ds_config.json, for editors.

    Example: dsguard schema --target 0.19.8 > ds_config.schema.json
    """
    try:
        release = Version(resolve_target(target).version)
    except TargetError as error:
        raise wrong_usage(str(error), option="--target") from None
    emit_utf8(json.dumps(json_schema(release), indent=2, ensure_ascii=False) + "\n")
