"""What ``dsguard report`` prints, and the page as text: its structure, escaping and size."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from dsguard.records.overview import overview
from dsguard.records.run import read_run
from dsguard.render.run_charts import BUCKETS, charts
from dsguard.render.run_page import render_run_page
from dsguard.render.run_text import render_run
from tests.conftest import ROOT, Dsguard, compare
from tests.records.made import found, header, long_run, step, summary, write

EXPECTED = Path(__file__).parent / "expected"
ATTACK = "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{data}}\u202e\x1b[31m"


def page(path: Path) -> str:
    run = read_run(path)
    return render_run_page(run, overview(run))


@pytest.mark.parametrize("look", ["plain", "ascii", "color"])
def test_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str) -> None:
    long_run(tmp_path, 400, ranks=2)
    monkeypatch.chdir(tmp_path)
    run = read_run(Path("run.jsonl"))
    text = render_run(run, overview(run), color=look == "color", unicode=look != "ascii")
    assert look != "ascii" or text.isascii()
    compare(EXPECTED / f"report-{look}.txt", text)


def test_the_text_moves_no_cursor(tmp_path: Path) -> None:
    long_run(tmp_path, 10, message=ATTACK)
    run = read_run(tmp_path / "run.jsonl")
    text = render_run(run, overview(run), color=False, unicode=True)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[31m" in text


def test_the_json_is_what_its_schema_says(dsguard: Dsguard, tmp_path: Path) -> None:
    schema = json.loads((ROOT / "docs" / "run-report-v1.schema.json").read_text("utf-8"))
    long_run(tmp_path, 50, ranks=2)
    write(tmp_path / "short.jsonl", header(deepspeed=None), summary(findings=[found()]))
    for name in ("run.jsonl", "short.jsonl"):
        told = json.loads(dsguard(f"report {name} -o json", tmp_path).out)
        jsonschema.validate(told, schema, jsonschema.Draft202012Validator)
    assert told["record"] == "short.jsonl"


class Tags(HTMLParser):
    """The elements of a page, and whether each was closed in its turn."""

    VOID = ("meta", "br", "rect", "path")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    return tags


@pytest.mark.parametrize("steps", [0, 1, 60, 3000])
def test_the_page_is_whole_and_asks_for_nothing(tmp_path: Path, steps: int) -> None:
    path = tmp_path / "run.jsonl"
    html = page(long_run(tmp_path, steps, ranks=2) if steps else write(path, header()))
    tags = parsed(html)
    for tag, attributes in tags.seen:
        assert not {"src", "href", "action", "style", "srcset"} & attributes.keys(), tag
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"https?:|url\(|@import|//[a-z]", html.replace("0.1.0", ""))
    ids = [attributes["id"] for _, attributes in tags.seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert ("windows" in "".join(filter(None, ids))) == bool(steps)


def test_what_the_file_says_stays_text(tmp_path: Path) -> None:
    run = tmp_path / "<b>run.jsonl"
    nasty = found(message=ATTACK, rule="<i>", code="<u>", file=ATTACK, help=ATTACK)
    head = header(engine="<img src=x>", precision="</title>", deepspeed="<a>", dsguard="<b>")
    write(run, head, step(1, findings=[nasty]), torn=ATTACK)
    html = page(run)
    names = {tag for tag, _ in parsed(html).seen}
    assert not names & {"a", "b", "i", "img", "u"}
    assert html.count("<script") == 2
    assert "\u202e" not in html
    assert "\x1b" not in html


def test_the_data_cannot_end_its_element(tmp_path: Path) -> None:
    long_run(tmp_path, 20, message=ATTACK)
    html = page(tmp_path / "run.jsonl")
    data = html.split('id="data">')[1].split("</script>")[0]
    assert "<" not in data
    assert len(json.loads(data)["from"]) == 20


def test_the_page_stays_small_and_keeps_every_anomaly(tmp_path: Path) -> None:
    """100,000 steps, every third of them out of the ordinary in one way or another."""
    lines = [
        step(
            n,
            micro_batches=4 if n % 3 else 3,
            applied=n % 5 != 0,
            grad_norm="NaN" if n % 7 == 0 else 0.1 + n % 11,
        )
        for n in range(1, 100_001)
    ]
    path = write(tmp_path / "run.jsonl", header(), *lines)
    run = read_run(path)
    told = overview(run)
    data = charts(run, told)
    kept = {name: len(mark["at"]) for name, mark in data["marks"].items()}
    assert kept == {"off": 33_333, "skipped": 20_000, "infinite": 14_285}
    assert sum(data["marks"]["off"]["at"]) == 99_999
    assert len(data["from"]) == BUCKETS
    assert len(render_run_page(run, told)) < 1_000_000


def test_making_the_page_is_linear(tmp_path: Path) -> None:
    """Counted in calls of functions, which no busy machine changes."""
    import cProfile
    import pstats

    def calls(steps: int) -> int:
        folder = tmp_path / str(steps)
        folder.mkdir()
        path = long_run(folder, steps)
        profile = cProfile.Profile()
        profile.runcall(page, path)
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    small, large = calls(5_000), calls(20_000)
    assert large < small * 4.4


def test_buckets_show_the_extremes(tmp_path: Path) -> None:
    lines = [step(n, grad_norm=50.0 if n == 4321 else 1.0) for n in range(1, 5001)]
    run = read_run(write(tmp_path / "run.jsonl", header(), *lines))
    data = charts(run, overview(run))
    (norm,) = [chart for chart in data["charts"] if chart["id"] == "norm"]
    highest = norm["series"][0]["high"]
    bucket = highest.index(50)
    assert data["from"][bucket] <= 4321 <= data["to"][bucket]
    assert max(norm["series"][0]["mean"]) < 50


def test_many_ranks_are_drawn_as_their_spread(tmp_path: Path) -> None:
    for rank in range(12):
        head = header(rank=rank, world_size=12, data_parallel_size=12)
        name = "run.jsonl" if rank == 0 else f"run.rank{rank}.jsonl"
        write(
            tmp_path / name, head, step(1, rank=rank, tokens=100 * rank + 100), summary(rank=rank)
        )
    run = read_run(tmp_path / "run.jsonl")
    told = overview(run)
    (tokens,) = [chart for chart in charts(run, told)["charts"] if chart["id"] == "tokens"]
    (series,) = tokens["series"]
    assert (series["low"], series["mean"], series["high"]) == ([100], [650], [1200])
    assert len(told.rank_tokens) == 12
