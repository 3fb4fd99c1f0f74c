"""Fixtures: the command, a transcript in a file, and one in a store."""

import json
from contextlib import closing
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, open_store
from praison_compressor.testing import SummaryModel
from tests.helpers.command import SESSION, runner
from tests.helpers.transcripts import audit


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
    """Return the command in a folder of the test's own, with a store there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRAISON_COMPRESSOR_STORE", f"sqlite:///{tmp_path / 'ledger.db'}")
    # `forget` looks into the host's sessions too: not into those of this machine's user.
    monkeypatch.setenv("PRAISONAI_HOME", str(tmp_path / "praisonai"))
    return runner(monkeypatch, capfd)


@pytest.fixture
def file(tmp_path):
    """Return a transcript."""
    path = tmp_path / "transcript.json"
    path.write_text(json.dumps(audit()))
    return path


@pytest.fixture
def writer(provider):
    """Return the options that name a model which writes a text."""

    def options(text: str, **more: Any) -> tuple[str, ...]:
        provider.answer_with(SummaryModel(text=text, **more))
        address = f"auxiliary_api_base={provider.base_url}"
        return ("--auxiliary-model", "writer", "--set", address)

    return options


@pytest.fixture
def view(run, file):
    """Return its view, of a session that is in the store."""
    out = file.parent / "view.jsonl"
    done = run("compress", file, "--window", 8_000, "--session", SESSION, "--out", out)
    assert done.code == 0, done.err
    return out


@pytest.fixture
def ours(view, tmp_path):
    """Return a compressor on the session's store."""
    with closing(open_store(f"sqlite:///{tmp_path / 'ledger.db'}")) as store:
        yield ContextCompressor(CompressorConfig(), store=store)
