"""A recorded run as one page of HTML, with charts."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from dsguard.render.html import html_page
from dsguard.render.run_charts import charts
from dsguard.render.run_page.body import body
from dsguard.render.run_wording import amount, duration, ending, moment

if TYPE_CHECKING:
    from dsguard.records.report import Overview
    from dsguard.records.run import RecordedRun


def render_run_page(run: RecordedRun, told: Overview) -> str:
    """The page; its size hardly grows with the number of steps."""
    data = charts(run, told)
    total = sum(start.seconds or 0 for start in told.starts)
    return html_page(
        title=f"{run.path.name}: what the run has done",
        lead=f"{amount(told.steps, 'optimizer step')} in {duration(total)}, started "
        f"{moment(told.starts[0].header.started_at)}, {ending(told.starts[-1])}",
        source=str(told.record),
        body=body(told, data),
        script=files(__name__).joinpath("page.js").read_text(encoding="utf-8"),
        data=data,
    )
