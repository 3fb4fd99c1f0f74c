"""What a view holds of what a summary stands for, wherever in the view it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from praison_compressor.compressor.context_compressor import ContextCompressor
from praison_compressor.compressor.result import CompressResult
from praison_compressor.config import CompressorConfig
from tests.helpers.command import runner

Message = dict[str, Any]


def paths(first: int, last: int) -> str:
    """So many names of files, no two alike."""
    return " ".join(f"src/module_{n}/handler_{n * 7919}.py" for n in range(first, last))


def conversation() -> list[Message]:
    """Names in the middle that the newest message repeats, and others that it does not."""
    found: list[Message] = [{"role": "user", "content": "Look through the modules."}]
    for start in range(0, 800, 20):
        found += [
            {"role": "assistant", "content": f"These are next: {paths(start, start + 20)}"},
            {"role": "user", "content": "Go on."},
        ]
    return [*found, {"role": "assistant", "content": f"Left to do: {paths(0, 150)}"}]


def compressed() -> CompressResult:
    """The conversation in a view that has little room for a summary."""
    config = CompressorConfig(context_window=128_000, protect_last_n_tokens=4_000)
    return ContextCompressor(config).compress_sync(
        conversation(), target_tokens=4_500, summary_target_tokens=100, force=True
    )


def test_what_stands_verbatim_in_the_view_is_held() -> None:
    """A name of the newest messages is not lost for standing in no summary; others are."""
    result = compressed()
    [new] = result.written
    assert new.after is not None
    held = result.coverage_in_view(new)
    assert held is not None
    assert held.total == new.after.total
    assert new.after.covered + 100 < held.covered < held.total


def test_a_static_summary_for_an_exact_target_is_audited_too() -> None:
    """Without a model as well: `eval` compares by it."""
    [new] = compressed().written
    assert new.method == "static"
    assert new.after is not None
    assert 0 < new.after.covered < new.after.total


def test_the_command_says_what_the_view_holds(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In the table, kind by kind below it, and as JSON."""
    file = tmp_path / "transcript.json"
    file.write_text(json.dumps(conversation()))
    run = runner(monkeypatch, capfd)
    options = (file, "--window", 128_000, "--target", 4_500, "--keep-tokens", 4_000)
    told = run("compress", *options)
    [part] = [p for p in run("compress", *options, "--json").json["parts"] if p["facts"]]
    facts = part["facts"]
    assert 0 < facts["held"] < facts["found"]
    assert f"the view holds {facts['held']:,} of its {facts['found']:,} facts" in told.out
    files = facts["by_kind"]["identifiers"]
    assert f"identifiers {files['held']:,}/{files['found']:,}" in told.out
