"""The report in a real browser: it draws, is silent, opens by keyboard, in light, dark and narrow.

Not run where no Chromium is. One wheel carries it, Qt's WebEngine: 116 MB, and it needs thirty
libraries of the system all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from praison_compressor.cli.report.life import Life, life_of_session, life_of_transcript
from praison_compressor.cli.report.page import render
from praison_compressor.compressor.context_compressor import ContextCompressor
from praison_compressor.config import CompressorConfig
from tests.benchmarks.browser import SCREENS, Browser, browser, checked, chromium
from tests.cli.test_commands import transcript

pytestmark = pytest.mark.skipif(
    chromium() is None,
    reason="not run: no Chromium on this machine (Debian: apt-get install chromium)",
)


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    """One tab of a headless Chromium."""
    with browser(str(chromium())) as running:
        yield running


def lives(directory: Path) -> dict[str, Life]:
    """A transcript lived again, and the same session as its store tells it."""
    config = CompressorConfig(
        model="gpt-4o",
        context_window=8_000,
        protect_last_n_tokens=1_000,
        store_url=str(directory / "ledger.db"),
    )
    ours = ContextCompressor(config)
    lived = life_of_transcript(transcript(60), ours, title="an audit", session_id="audit-1")
    ours.store.open("default", "the-fork", "audit-1")
    stored = life_of_session(ours.store, "default", "audit-1", ours.tokens)
    ours.close()
    return {"lived": lived, "stored": stored}


def test_the_page_in_a_browser(tab: Browser, tmp_path: Path) -> None:
    """Chart, legend and cards are there, nothing is asked for, nothing scrolls sideways."""
    for name, life in lives(tmp_path).items():
        page = tmp_path / f"{name}.html"
        page.write_text(render(life), encoding="utf-8")
        # How quick it is belongs to the benchmark.
        found = [row for row in checked(tab, page, life) if row[0] != "loaded"]
        assert [row for row in found if not row[2]] == []
        assert len(found) >= 7


def test_light_and_dark_are_two_pictures(tab: Browser, tmp_path: Path) -> None:
    """The page follows the reader's scheme: bright on one, dark on the other."""
    page = tmp_path / "page.html"
    page.write_text(render(lives(tmp_path)["lived"]), encoding="utf-8")
    brightness = {}
    for name, width, height, scheme in SCREENS:
        tab.size(width, height, scheme)
        tab.open(page)
        tab.picture(tmp_path / f"{name}.png")
        colour = tab.run("getComputedStyle(document.body).backgroundColor")
        brightness[name] = sum(int(part) for part in colour.strip("rgb()").split(",")[:3])
    assert brightness["light"] > 600
    assert brightness["dark"] < 200
    assert (tmp_path / "light.png").read_bytes() != (tmp_path / "dark.png").read_bytes()
