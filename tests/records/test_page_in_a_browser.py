"""The page in a real browser: it draws, answers keys, throws nothing and asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Dsguard
from tests.records.browser import Page, browsing, installed
from tests.records.made import long_run

BROWSER = installed()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")

ATTACK = (
    "</script><script>document.title='run'</script><img src=x onerror=document.title='run'>"
    "{{data}} \u202e"
)

COLOURED = """
(() => [...document.querySelectorAll("canvas")].map((canvas) => {
  const {width, height} = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const [r, g, b] = %s;
  let found = 0;
  for (let i = 0; i < pixels.length; i += 4)
    if (Math.abs(pixels[i] - r) + Math.abs(pixels[i+1] - g) + Math.abs(pixels[i+2] - b) < 40
        && pixels[i+3] > 100) found++;
  return found;
}))()
"""
BLUE, RED = "[47, 111, 222]", "[206, 44, 49]"
BLUE_IN_THE_DARK = "[107, 164, 255]"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert BROWSER is not None
    with browsing(BROWSER, tmp_path_factory.mktemp("profile")) as page:
        yield page


def opened(page: Page, dsguard: Dsguard, folder: Path, steps: int, **how: object) -> Page:
    record = long_run(folder, steps, ranks=2, message=ATTACK)
    outcome = dsguard(f"report {record} --html {folder / 'run.html'}")
    assert outcome.code == 0
    page.troubles.clear()
    page.open(folder / "run.html", **how)  # type: ignore[arg-type]
    return page


@pytest.mark.parametrize("steps", [1, 60, 5000])
def test_every_chart_is_drawn(page: Page, dsguard: Dsguard, tmp_path: Path, steps: int) -> None:
    opened(page, dsguard, tmp_path, steps)
    assert page.troubles == []
    canvases = page.evaluate("document.querySelectorAll('canvas').length")
    assert page.evaluate("Number(document.documentElement.dataset.drawn)") == canvases >= 6
    drawn, red = page.evaluate(COLOURED % BLUE), page.evaluate(COLOURED % RED)
    assert red[0] > 10  # the windows that are off
    # The only window of a run of one step is off.
    assert all(count > 20 for count in (drawn if steps > 1 else drawn[1:])), drawn


def test_a_message_of_the_record_runs_nothing(page: Page, dsguard: Dsguard, tmp_path: Path) -> None:
    opened(page, dsguard, tmp_path, 60)
    assert page.evaluate("document.title") == "run.jsonl: what the run has done"
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert "</script><script>" in page.evaluate("document.querySelector('.violations').innerText")
    assert page.troubles == []


def test_the_page_refuses_a_script_that_is_not_its_own(
    page: Page, dsguard: Dsguard, tmp_path: Path
) -> None:
    """Were anything ever let through, the policy of the page would stop it."""
    opened(page, dsguard, tmp_path, 60)
    html = tmp_path / "run.html"
    text = html.read_text(encoding="utf-8")
    html.write_text(text.replace("</main>", "<script>document.title = 'run'</script></main>"))
    page.open(html)
    assert page.evaluate("document.title") == "run.jsonl: what the run has done"
    assert any("Content Security Policy" in trouble for trouble in page.troubles)


def test_the_keyboard_walks_through_the_anomalies(
    page: Page, dsguard: Dsguard, tmp_path: Path
) -> None:
    opened(page, dsguard, tmp_path, 60)
    read = "document.querySelector('#chart-windows .read').textContent"
    page.evaluate("document.querySelector('#chart-windows canvas').focus()")
    assert page.evaluate(read) == ""
    page.press("n")
    assert page.evaluate(read).startswith("step 1: micro-batches 4, expected 4, skipped")
    page.press("End")
    assert page.evaluate(read) == "step 60: micro-batches 2, expected 4, off boundary"
    page.press("ArrowLeft")
    assert page.evaluate(read) == "step 59: micro-batches 4, expected 4"
    assert page.evaluate("document.getElementById('reset').disabled")
    page.press("+")
    assert not page.evaluate("document.getElementById('reset').disabled")
    page.press("Escape")
    assert page.evaluate("document.getElementById('reset').disabled")
    assert page.troubles == []


def test_a_finding_leads_to_its_step(page: Page, dsguard: Dsguard, tmp_path: Path) -> None:
    opened(page, dsguard, tmp_path, 5000)
    page.evaluate("document.querySelector('.violations button').click()")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    read = page.evaluate("document.querySelector('#chart-windows .read').textContent")
    first, last = (int(n.replace(",", "")) for n in read.split(":")[0][6:].split(" to "))
    assert first <= 2500 <= last
    assert "off boundary" in read
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"
    assert page.troubles == []


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_nothing_sticks_out(page: Page, dsguard: Dsguard, tmp_path: Path, width: int) -> None:
    opened(page, dsguard, tmp_path, 60, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_dark_page_draws_in_its_own_colours(
    page: Page, dsguard: Dsguard, tmp_path: Path
) -> None:
    opened(page, dsguard, tmp_path, 60, dark=True)
    assert all(count > 20 for count in page.evaluate(COLOURED % BLUE_IN_THE_DARK))
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(17, 18, 20)"
    assert page.troubles == []
