"""A loop on each provider's API reads back what was compressed, through a strict provider."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from praison_compressor import CompressorConfig
from praison_compressor.testing import Call, LocalProvider, Reply, Worker
from tests.project.test_examples import example, texts


@pytest.mark.parametrize(
    "module",
    [example("own_loop"), example("anthropic_loop"), example("responses_loop")],
    ids=lambda module: module.__name__,
)
def test_a_loop_finds_what_its_view_lacks(
    module: ModuleType, provider: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both recall tools are described in the API's form, called, and answered in its form."""
    monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    config = CompressorConfig(
        model="gpt-4o-mini", context_window=6_000, output_reserve=1_000, recall=True
    )
    reading = Worker(calls=9, tool="read_file", arguments=lambda _, n: {"name": f"vol{n}.txt"})
    provider.answer_with(reading)
    loop = module.Loop(texts(tmp_path / "texts"), config)
    loop.ask("What do these say of harbours?")
    search = Call("search_conversation_archive", {"query": "FACT-1000"})
    provider.answer_with([Reply(calls=(search,)), Reply("FACT-1000 is the permit of volume 0.")])
    assert "FACT-1000" in loop.ask("Which permit was that of volume 0?")
    assert [record.error for record in provider.refused] == []
    asked = provider.requests[-1]
    assert "was built under permit FACT-1000" in str(asked.messages[-1])
    assert "read_conversation_archive" in str(asked.tools)
