"""A recorded run as one page of HTML that needs nothing else: no network, no server.

What a file says reaches the page as escaped text or as JSON, and the page runs no script but its
own, which its Content-Security-Policy names by hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files

from dsguard import __version__
from dsguard.records.report import Overview
from dsguard.records.run import RecordedRun
from dsguard.render.run_charts import charts
from dsguard.render.run_page.body import body
from dsguard.render.run_page.escaping import safe
from dsguard.render.run_wording import amount, duration, ending, moment


def render_run_page(run: RecordedRun, told: Overview) -> str:
    """The page; its size hardly grows with the number of steps."""
    data = charts(run, told)
    style, script = _asset("page.css"), _asset("page.js")
    last = told.starts[-1]
    total = sum(start.seconds or 0 for start in told.starts)
    parts = {
        "title": safe(f"{run.path.name}: what the run has done"),
        "lead": safe(
            f"{amount(told.steps, 'optimizer step')} in {duration(total)}, started "
            f"{moment(told.starts[0].header.started_at)}, {ending(last)}"
        ),
        "generator": safe(f"dsguard {__version__}"),
        "footer": safe(f"Made by dsguard {__version__} from {told.record}"),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "body": body(told, data),
        "data": _json(data),
    }
    # One pass: a text that looks like a place of the template is not filled in again.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _asset("page.html"))


@cache
def _asset(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _json(data: object) -> str:
    """JSON in which nothing can end the element that holds it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
