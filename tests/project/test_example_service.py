"""The example of a web service, started for real: uvicorn, two processes, PostgreSQL, HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from praison_compressor.ledger.sql.store import open_store
from praison_compressor.testing import LocalProvider, Reply, Summarizer
from tests.helpers.stores import Postgres
from tests.project.test_examples import EXAMPLES, environment_of, is_summary

pytest_plugins = ["tests.helpers.stores"]

WINDOW = 4_000
SESSION = "shop-1"
CALLERS = 4


@contextmanager
def service(database: str, provider: LocalProvider, log: Path) -> Iterator[str]:
    """The service with two workers; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = environment_of(provider) | {
        "DATABASE_URL": database,
        "CONTEXT_WINDOW": str(WINDOW),
        "SUMMARY_MODEL": "openai/aux",
    }
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES)]
    command += ["fastapi_service:create_app", "--factory", "--workers", "2", "--port", str(port)]
    with log.open("w") as out:
        running = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(address, running, log)
            yield address
        finally:
            running.terminate()
            running.wait(30)


def wait_for(address: str, running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 240
    while True:
        assert running.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        with suppress(httpx.HTTPError):
            httpx.get(f"{address}/openapi.json").raise_for_status()
            return
        time.sleep(0.2)


def say(address: str, number: int) -> dict[str, Any]:
    words = f"Delivery FACT-{100 + number}: " + "boxes of pears went to the cold room. " * 100
    # A connection of its own for each turn: whichever worker is free takes it.
    done = httpx.post(f"{address}/sessions/{SESSION}", json={"text": words}, timeout=240)
    assert done.status_code == 200, done.text
    return dict(done.json())


def test_workers_share_one_ledger_and_no_summary_is_paid_for_twice(
    postgres: Postgres, tmp_path: Path
) -> None:
    """Two processes serve one session at once; each summary that was asked for is in the ledger."""
    database = postgres.empty()
    with LocalProvider(window=WINDOW, windows={"aux": 128_000}) as provider:
        provider.route(is_summary, Summarizer(facts=r"FACT-\d+"))
        provider.answer_with(lambda asked: Reply("Noted."))
        with (
            service(database, provider, tmp_path / "log.txt") as address,
            ThreadPoolExecutor(CALLERS) as callers,
        ):
            turns = list(callers.map(lambda number: say(address, number), range(12)))
        asked = [record for record in provider.requests if record.model == "aux"]
        assert provider.refused == []
    store = open_store(database)
    entries = store.open("default", SESSION).entries
    store.close()
    written = [entry for entry in entries if entry.segment.method == "model"]

    assert len({turn["worker"] for turn in turns}) == 2
    assert turns[-1]["context_status"] == "summarized"
    assert turns[-1]["tokens_of_all"] > 2 * WINDOW > turns[-1]["tokens"]
    assert len(asked) == len(written) > 1
    assert all("FACT-" in str(entry.segment.rendered) for entry in written)
