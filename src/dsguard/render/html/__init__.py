"""One page of HTML that needs nothing else: no network, no server.

What a file says reaches a page as escaped text or as JSON, and a page runs no script but its own,
which its Content-Security-Policy names by hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files

from dsguard import __version__
from dsguard.render.html.escaping import safe


def html_page(
    *, title: str, lead: str, source: str, body: str, script: str = "", data: object = None
) -> str:
    """The page.

    Args:
        title: plain text.
        lead: what the page says in one line, plain text.
        source: the file that it was made from, plain text.
        body: HTML, whose texts are escaped.
        script: JavaScript that runs at the end of the page.
        data: what the script finds as JSON in the element ``data``.
    """
    style = _asset("page.css")
    parts = {
        "title": safe(title),
        "lead": safe(lead),
        "generator": safe(f"dsguard {__version__}"),
        "footer": safe(f"Made by dsguard {__version__} from {source}"),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "body": body,
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
