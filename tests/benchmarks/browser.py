"""The report in a real browser: what it draws, whether it is quick at 1,000 turns, screenshots.

    python -m tests.benchmarks.browser [--turns 1000] [--chromium PATH] [--out FOLDER]

Needs a Chromium on this machine (on Debian: `apt-get install chromium`). Exit code 1 where a limit
is not kept. The screenshots in FOLDER are for your eyes; tests/cli/test_report_browser.py does it
with a short session.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from rich.console import Console
from rich.table import Table
from websockets.sync.client import ClientConnection, connect

from praison_compressor.cli.report.life import Life, life_of_transcript
from praison_compressor.cli.report.page import render
from praison_compressor.compressor.context_compressor import ContextCompressor
from praison_compressor.config import CompressorConfig
from tests.cli.test_commands import transcript

LOAD_SECONDS = 3.0
"""A page that takes longer to stand there is left."""

SCREENS = (
    ("light", 1280, 2200, "light"),
    ("dark", 1280, 2200, "dark"),
    ("narrow", 420, 3000, "light"),
)

FIND = """(() => {
  const canvas = document.querySelector("#chart canvas");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let at = 0; at < pixels.length; at += 4) colours.add(pixels.slice(at, at + 4).join());
  return {
    colours: colours.size,
    nodes: document.querySelectorAll("*").length,
    wider: document.documentElement.scrollWidth > innerWidth,
    legend: document.querySelector(".u-legend").innerText,
    cards: document.querySelectorAll("details.card").length,
    load: performance.getEntriesByType("navigation")[0].loadEventEnd / 1000,
  };
})()"""


def chromium() -> str | None:
    """The Chromium of this machine: `CHROMIUM`, or what its packages call it."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Browser:
    """One tab, over the browser's own protocol."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            said = json.loads(self._socket.recv(timeout=60))
            if said.get("id") == number:
                if "error" in said:
                    raise RuntimeError(f"{method}: {said['error']}")
                return dict(said["result"])
            self.events.append(said)

    def run(self, script: str) -> Any:
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def size(self, width: int, height: int, scheme: str) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def open(self, path: Path) -> None:
        self.events.clear()
        self.ask("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + 60
        while self.run("document.readyState") != "complete" and time.monotonic() < deadline:
            time.sleep(0.05)

    def key(self, name: str, text: str = "") -> None:
        code = {"Tab": 9, "Enter": 13}[name]
        common = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    @property
    def complaints(self) -> list[str]:
        """What the browser's console says, and every address asked for but the page's own."""
        wrong = [
            str(event["params"])
            for event in self.events
            if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")
        ]
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return wrong + [url for url in asked if not url.startswith(("file:", "data:"))]


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        # It would look for its maker's hosts at every start.
        command += ["--no-first-run", "--disable-sync", "--disable-component-update"]
        command += ["--disable-background-networking"]
        command += ["--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with connect(_tab(Path(profile) / "DevToolsActivePort"), max_size=None) as socket:
                yield Browser(socket)
        finally:
            running.terminate()
            running.wait(20)


def _tab(port_file: Path) -> str:
    deadline = time.monotonic() + 60
    while not port_file.is_file() or not port_file.read_text().strip():
        if time.monotonic() > deadline:
            raise SystemExit("the browser did not start")
        time.sleep(0.1)
    port = port_file.read_text().splitlines()[0]
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
        if tabs:
            return str(tabs[0]["webSocketDebuggerUrl"])
        time.sleep(0.1)


def opened_by_keyboard(tab: Browser) -> bool:
    """Whether Tab reaches the first folded part of the page, and Enter opens it."""
    closed = "document.querySelectorAll('details[open]').length"
    before = tab.run(closed)
    for _ in range(40):
        tab.key("Tab")
        if tab.run("document.activeElement.tagName") == "SUMMARY":
            tab.key("Enter", text="\r")
            return bool(tab.run(closed) == before + 1)
    return False


def checked(tab: Browser, path: Path, life: Life) -> list[tuple[str, str, bool]]:
    """What is promised of a page, what was found, and whether it holds."""
    tab.size(1280, 2200, "light")
    tab.open(path)
    found = tab.run(FIND)
    complaints = tab.complaints
    keyboard = opened_by_keyboard(tab)
    tab.size(420, 900, "light")
    tab.open(path)
    narrow = tab.run(FIND)
    return [
        ("console and network", "; ".join(complaints) or "silent", not complaints),
        ("colours in the chart", f"{found['colours']} (more than 3)", found["colours"] > 3),
        (
            "legend",
            " ".join(found["legend"].split()),
            f"{life.points[-1].view:,}" in found["legend"],
        ),
        ("cards", f"{found['cards']} of {len(life.cards)}", found["cards"] == len(life.cards)),
        ("elements", f"{found['nodes']:,}", True),
        (
            "loaded",
            f"{found['load']:.2f} s (at most {LOAD_SECONDS:g})",
            found["load"] < LOAD_SECONDS,
        ),
        ("opened by keyboard", str(keyboard), keyboard),
        ("420 px: no sideways scrolling", str(not narrow["wider"]), not narrow["wider"]),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--window", type=int, default=64_000)
    parser.add_argument("--chromium", default=chromium() or "chromium")
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    config = CompressorConfig(
        model="gpt-4o", context_window=given.window, tool_policies={"*": "summarize"}
    )
    began = time.perf_counter()
    life = life_of_transcript(
        transcript(given.turns), ContextCompressor(config), title=f"{given.turns:,} turns"
    )
    lived = time.perf_counter() - began
    began = time.perf_counter()
    page = (given.out / "report.html").resolve()
    page.write_text(render(life), encoding="utf-8")
    written = time.perf_counter() - began
    table = Table("what", "found", "holds", title=f"the report of {given.turns:,} turns")
    table.add_row("lived again", f"{lived:.1f} s, {len(life.points)} requests", "")
    table.add_row("page written", f"{written:.1f} s, {page.stat().st_size:,} bytes", "")
    with browser(given.chromium) as tab:
        rows = checked(tab, page, life)
        for name, width, height, scheme in SCREENS:
            tab.size(width, height, scheme)
            tab.open(page)
            tab.picture(given.out / f"{name}.png")
    for what, said, holds in rows:
        table.add_row(what, said, "yes" if holds else "NO")
    Console().print(table)
    return int(not all(holds for *_, holds in rows))


if __name__ == "__main__":
    sys.exit(main())
