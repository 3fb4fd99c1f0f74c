"""The public face in typed use: `mypy --strict` checks it, nothing runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import praison_compressor as ours
from praison_compressor.praisonai import CompressorContext
from praison_compressor.testing import Asked, LocalProvider, Recorded, Reply

Message = dict[str, Any]


class Mine:
    """A summarizer of a user's own."""

    @property
    def window(self) -> int | None:
        return 8_000

    async def summarize(
        self,
        messages: list[Message],
        *,
        max_tokens: int,
        model: str | None,
        timeout_seconds: float,
    ) -> ours.SummaryReply:
        return ours.SummaryReply("text", ours.Usage(prompt_tokens=1, cost=0.5), model, "stop")


def listener(event: ours.Event) -> None:
    print(event.name.upper(), event.session_id.upper(), dict(event.data))


def construct() -> ours.ContextCompressor:
    ours.CompressorConfig.from_mapping({"tool_policies": {"read_*": "mask"}})
    config = ours.CompressorConfig(model="gpt-4o", context_window=8_000, fallback_models=("a",))
    store: ours.Store = ours.MemoryStore()
    given: ours.Summarizer = Mine()
    disk: ours.Store = ours.open_store("ledger.db", key=None)
    disk.close()
    tokens, telemetry = ours.TokenCounter("gpt-4o"), ours.Telemetry()
    print(ours.CompressorConfig.names())
    return ours.ContextCompressor(
        config,
        summarizer=given,
        store=store,
        tokens=tokens,
        on_event=listener,
        telemetry=telemetry,
    )


def ask_first(compressor: ours.ContextCompressor, messages: Sequence[Message]) -> bool:
    preview: ours.Preview = compressor.preview(
        messages, session_id="research-42", target_tokens=4_000
    )
    parts: tuple[ours.Part, ...] = preview.parts
    saved: int = sum(part.tokens_before - part.tokens_after for part in parts)
    fates: dict[int, str] = dict(preview.fates())
    print(saved, fates, preview.would_write)
    return preview.would_compress


async def use(compressor: ours.ContextCompressor, messages: list[Message]) -> list[Message]:
    result: ours.CompressResult = await compressor.compress(
        messages,
        protect_last_n_tokens=20_000,
        summary_target_tokens=750,
        auxiliary_model=None,
        session_id="research-42",
        parent_session_id=None,
        target_tokens=None,
        force=False,
    )
    again: ours.CompressResult = compressor.compress_sync(messages, session_id="research-42")
    numbers: tuple[int, int, int] = (again.tokens_before, again.tokens_after, again.tokens_saved)
    status: Literal["full", "masked", "summarized"] = result.context_status
    method: Literal["model", "static", "reused"] | None = result.summary_method
    ids: tuple[str, str | None] = (result.session_id, result.parent_session_id)
    cost: float | None = result.usage.cost
    segments: tuple[ours.Segment, ...] = result.segments
    resumed: ours.CompressResult = compressor.resume("research-42", target_tokens=4_000)
    saved: bool = compressor.save(messages, session_id="research-42")
    count: int = compressor.save_transcripts()
    view: list[Message] = compressor.fallback_view(messages, session_id="research-42").messages
    whole: list[Message] = compressor.verbatim(view, session_id="research-42")
    print(numbers, status, method, ids, cost, segments, resumed, saved, count)
    return whole


def fails(compressor: ours.ContextCompressor) -> None:
    try:
        compressor.compress_sync([])
    except ours.InvalidMessages as error:
        index: int | None = error.index
        print(index)
    except ours.BudgetTooSmall as error:
        missing: int = error.needed - error.budget
        print(missing)
    except ours.NothingShorter as error:
        print(error)
    except ours.CompressorError as error:
        print(error)


def host() -> None:
    try:
        ours.install({"auxiliary_model": "gpt-4o-mini"})
    except ours.HostMoved as error:
        print(error.seam.upper())
    context = CompressorContext(auxiliary_model="gpt-4o-mini", protect_last_n_tokens=5_000)
    print(context)
    ours.uninstall()


def answer(asked: Asked) -> Reply:
    return Reply(asked.last_user)


def local() -> list[Recorded]:
    with LocalProvider(answer, window=8_000) as provider:
        address: str = provider.base_url
        print(address)
        return provider.refused
