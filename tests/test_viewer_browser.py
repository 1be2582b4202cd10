# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: what it shows, not what it was told."""

import json
import time

import pytest
from browser import FOUND, MISSING, Browser
from recorded_run import metrics, status, write_run
from watching import Watching

from headrace.runtime.status import StatusWriter

pytestmark = pytest.mark.skipif(FOUND is None, reason=MISSING)

TEXT = "document.querySelector({!r}).textContent"
PICTURE = "document.querySelector('#screen').toDataURL()"
CURVES = "[...document.querySelectorAll({!r})].map((path) => path.getTotalLength())"


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


def settled(browser):
    browser.wait_for("document.body?.dataset.news > 0")
    browser.wait_for(f"({CURVES.format('#returns path.line')}).length == 2")


def test_a_recorded_run(browser, tmp_path):
    with Watching(write_run(tmp_path / "CartPole-ppo", seconds=90)) as watching:
        browser.open(watching.url)
        settled(browser)
        shown = {
            selector: browser.value(TEXT.format(selector))
            for selector in (
                *("#run-name", "#run-kind", "#state", "#env-steps", "#elapsed", "#best-return"),
                *(f"#rate-{name} .value" for name in ("sampling", "update", "update_frames")),
                *("#rate-evaluation .value", "#ring .value", "#staleness .value"),
            )
        }
        rates = status(90, 0).rates
        assert shown == {
            "#run-name": "CartPole-ppo",
            "#run-kind": "CartPole-v1 · ppo · async",
            "#state": "finished",
            "#env-steps": "5.49 M",
            "#elapsed": "1:30",
            "#best-return": "421",
            "#rate-sampling .value": f"{rates.sampling / 1000:.3g} k",
            "#rate-update .value": f"{rates.update:.0f}",
            "#rate-update_frames .value": f"{rates.update_frames / 1000:.3g} k",
            "#rate-evaluation .value": "2,900",
            "#ring .value": "100 %",
            "#staleness .value": f"{status(90, 0).staleness_mean:.3g}",
        }
        for chart, count in (("#returns", 2), ("#staleness", 2), ("#ring", 1), ("#metric", 1)):
            lengths = browser.value(CURVES.format(f"{chart} path.line"))
            assert len(lengths) == count, chart
            assert min(lengths) > 200, chart
        assert len(browser.value(CURVES.format(".rates path.line"))) == 4
        rows = browser.value(
            "[...document.querySelectorAll('#processes tr')].map((r) => r.innerText)"
        )
        assert len(rows) == 5
        assert [one.split("\t")[0] for one in rows][1:3] == ["sampler 0", "sampler 1"]
        assert "46 %" in rows[1]
        assert rows[2].split("\t")[-1] == "1", "restarts"
        assert "killed by SIGKILL" in browser.value(TEXT.format("#events"))
        assert "0.0003" in browser.value(TEXT.format("#config"))


EXTENTS = {
    "[3, 1, 2]": [1, 3],
    "[1, 1, 1, 1, 1, 1, 1, 1e9]": [1, 1],
    "[0, 10, 20, 30, 40, 50, 60, 70, 80, -1e5]": [0, 80],
    "[0, 10, 20, 30, 40, 50, 60, 70, 80, -100]": [-100, 80],
    "[...Array(90).fill(500), 9, 20, 50, 120, 300]": [9, 500],
    "[-1e4, 1e4, ...Array.from({ length: 98 }, (_, i) => i)]": [0, 97],
}
"""Of values: from where to where a chart of them goes."""
OUTSIDE = "[...document.querySelectorAll('#returns {}.outside')].map((e) => e.textContent)"


def test_an_extreme_evaluation_does_not_flatten_the_rest(browser, tmp_path):
    folder = write_run(tmp_path / "run", seconds=90)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    (odd,) = [line for line in lines if line["seconds"] == 45]
    odd["evaluation/return"] = -40_000.0
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Watching(folder) as watching:
        browser.open(watching.url)
        settled(browser)
        assert browser.value(OUTSIDE.format("path")) == [""], "one arrow"
        assert browser.value(OUTSIDE.format("text")) == ["\N{MINUS SIGN}40 k"]
        values = browser.value(
            "[...document.querySelectorAll('#returns text[text-anchor=end]')]"
            ".map((e) => Number(e.textContent)).filter((v) => !isNaN(v))"
        )
        assert 0 <= min(values) <= 100
        assert 400 <= max(values) <= 600, "the axis is that of the others"
        browser.screenshot(tmp_path / "outside.png")
        for values, extent in EXTENTS.items():
            script = f"import('/chart.js').then((m) => m.extent({values}))"
            assert browser.value(script) == extent, values


def test_the_agent_is_seen_playing(browser, tmp_path):
    with Watching(write_run(tmp_path / "run", seconds=5)) as watching:
        browser.open(watching.url)
        browser.wait_for("document.querySelector('#screen')?.dataset.frames > 3")
        before = browser.value(PICTURE)
        colours = browser.value(
            "(() => { const c = document.querySelector('#screen'), d = c.getContext('2d')"
            ".getImageData(0, 0, c.width, c.height).data, s = new Set();"
            "for (let i = 0; i < d.length; i += 4) s.add(d[i] >> 4); return s.size; })()"
        )
        assert colours > 3, "something is drawn"
        browser.wait_for(f"{PICTURE} != {before!r}")
        browser.value("document.querySelector('#pause').click()")
        browser.wait_for("document.querySelector('#pause').textContent == 'Play'")
        time.sleep(0.3)
        frames = browser.value("document.querySelector('#screen').dataset.frames")
        time.sleep(0.5)
        assert browser.value("document.querySelector('#screen').dataset.frames") == frames


def test_a_live_run_and_the_end_of_the_viewer(browser, tmp_path):
    folder = write_run(tmp_path / "run", seconds=20, state="running")
    with Watching(folder) as watching:
        browser.open(watching.url)
        settled(browser)
        assert browser.value(TEXT.format("#state")) == "running"
        later = status(200, began=time.time() - 200)
        StatusWriter(folder).write(later)
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(metrics(later, evaluated=True)) + "\n")
        browser.wait_for(f"{TEXT.format('#elapsed')} == '3:20'")
        browser.value("document.querySelector('[data-axis=\"1\"]').click()")
        browser.wait_for("document.querySelector('#returns').textContent.includes('min')")
    browser.wait_for("!document.querySelector('#banner').hidden")
    assert browser.value(TEXT.format("#state")) == "viewer gone"
    assert browser.value(TEXT.format("#elapsed")) == "3:20", "what was shown stays"


def test_what_cannot_be_drawn_is_said(browser, tmp_path):
    with Watching(write_run(tmp_path / "run", seconds=5, env="Memory-v0")) as watching:
        browser.open(watching.url)
        browser.wait_for(f"({TEXT.format('#screen-note')} ?? '').includes('cannot')")
        note = browser.value("document.querySelector('#screen-note').innerText")
        assert note == "Memory-v0 cannot be drawn: it has no Gymnasium definition"


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_dark_and_light_and_small(browser, tmp_path, scheme):
    browser.prefer(scheme)
    with Watching(write_run(tmp_path / "run", seconds=5)) as watching:
        browser.open(watching.url)
        settled(browser)
        ground = browser.value("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")
        for width in (1440, 800, 390):
            browser.resize(width, 900)
            wide = browser.wait_for("document.documentElement.scrollWidth")
            assert wide <= width, "nothing is beyond the edge"
        browser.resize(1440, 1180)


def test_nothing_went_wrong_and_nobody_else_was_asked(browser):
    """After the others: of all that their pages did."""
    refused = [text for text in browser.complaints if "ERR_CONNECTION_REFUSED" not in text]
    assert refused == [], "the page tries again where the viewer has ended; nothing else fails"
    assert browser.requested
    assert {url.split("/")[2].split(":")[0] for url in browser.requested} == {"127.0.0.1"}
