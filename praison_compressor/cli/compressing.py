"""Compress a transcript in a file, or preview that: `compress`, `inspect`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Part, Preview
from ..compressor.result import CompressResult
from ..config import CompressorConfig
from ..events import Event
from ..ledger.memory_store import MemoryStore
from ..messages import Message, text_of, tool_calls_of
from ..messages.digests import CachedMessage
from ..messages.display import one_line, pluralize, truncate_line
from ..tokens.counter import TokenCounter
from ..view.frame import is_framed, unframe
from . import parameters as par
from .terminal import Piece, Table, answer, in_flags, money, number, progress, titled, unlogged
from .transcripts import read_one, writable, write


@par.command
@par.argument("file")
@par.option("--out", "FILE", "Write the view there (.jsonl: JSON Lines); - is stdout.")
@par.switch("--show", "Print the summaries too.")
@par.call
@par.CONVERSATION
@par.configured
@par.AS_JSON
def compress(
    file: str,
    conversation: int | None,
    out: str | None,
    show: bool,
    call: par.CallOptions,
    config: CompressorConfig,
    as_json: bool,
) -> None:
    """Compress a transcript.

    Head and tail stay verbatim, the middle becomes a summary. The file itself is never changed.

    FILE holds a JSON list of chat messages, {"messages": [...]}, or JSON Lines with one message a
    line or one conversation a line; - is standard input. `--set tool_policies=keep_none` turns old
    tool outputs into one line each; where that is enough, no summary is written.

    $ praison-compressor compress talk.jsonl --window 32k --out view.jsonl
    """
    messages = read_one(file, conversation)
    if out is not None:
        writable(out, source=file)
    failures: list[str] = []
    with progress("Compressing", len(messages)) as step:
        tokens = Watched(config.model, step)
        compressor = ContextCompressor(
            par.with_window(config), tokens=tokens, on_event=lambda e: failures.extend(_failure(e))
        )
        if call.choices:  # a preview gives references to messages
            compressor.preview(messages, **call.options)
        with unlogged():  # `failures` has the reasons
            result = compressor.compress_sync(messages, **call.options, **call.choices)
        # Of an empty range: the view as it is now, and no compression to come.
        seen = compressor.preview(messages, session_id=call.session, until=0)
    if out is not None:
        write(out, result.messages, source=file)
    parts = list(_as_written(seen.parts, result))
    value = {
        "file": file,
        **{name: getattr(result, name) for name in OF_RESULT},
        "failures": failures,
        "parts": list(map(_part_json, parts)),
        "messages": None if out else result.messages,
    }

    def shown() -> Iterator[Piece]:
        yield _parts_table(seen, parts, len(result.messages))
        yield _method(result, config.auxiliary_model, asked=call.force or bool(call.target))
        yield from (f"  {failure}" for failure in failures)
        yield from _savings(result)
        yield from _kept(call.session, result, config, messages)
        for segment in result.segments if show else ():
            yield from titled("summary", unframe(segment.rendered))
        where = "stdout" if out == "-" else out or "nowhere; --out FILE writes it"
        yield f"View written to {where}." if out else f"View written {where}."

    answer(value, shown(), as_json, file=sys.stderr if out == "-" else None)


OF_RESULT = (
    *("session_id", "parent_session_id", "context_status", "summary_method"),
    *("tokens_before", "tokens_after", "tokens_saved", "masked_secrets"),
    *("cost_saved", "cost_saved_cached", "usage"),
)
"""Fields of a result that `--json` prints."""
COUNTED_BETWEEN_STEPS = 1_024
"""Messages counted before the bar moves."""


class Watched(TokenCounter):
    """Counts tokens, and calls a function for each message."""

    def __init__(self, model: str | None, step: Callable[[], None]) -> None:
        super().__init__(model)
        self._step = step

    def begin_count(self, messages: Iterable[CachedMessage]) -> Callable[[], list[int]]:
        """Count each message now; return a function that returns the counts."""
        waiting, found = iter(messages), list[int]()
        while some := list(islice(waiting, COUNTED_BETWEEN_STEPS)):
            found += super().begin_count(some)()
            for _ in some:
                self._step()
        return lambda: found


def _failure(event: Event) -> list[str]:
    reason = one_line(str(event.data.get("reason", "")))
    return [reason] if event.name == "fell_back" else []


def _as_written(parts: Iterable[Part], result: CompressResult) -> Iterator[Part]:
    """Yield the parts; a summary that this command wrote has that reason."""
    by = {unframe(text.message): text.model or text.method for text in result.written}
    for part in parts:
        how = by.get(unframe(part.segment.rendered)) if part.segment else None
        yield part if how is None else replace(part, why=f"summarized now ({how})")


def _kept(
    session: str | None, result: CompressResult, config: CompressorConfig, messages: Sequence[Any]
) -> Iterator[str]:
    """Yield where the session is kept, and under which name."""
    if config.store_url is None:
        if session is not None:
            yield f"Session {session} is kept nowhere; --store names a place for it."
        if any(map(is_framed, messages)):
            yield "The file holds a summary. Without its store (--store) it is ordinary text."
    elif result.context_status == "full":
        yield "Nothing was stored: a session is stored when it is first compressed."
    else:
        named = "" if session else "; --session names it yourself"
        yield f"Kept as session {session or result.session_id}{named}."


def _parts_table(seen: Preview, parts: Sequence[Part], view_messages: int) -> Table:
    """Return a row for each part of a view, and the total."""
    before = sum(part.tokens_before for part in parts) + seen.opening
    after = sum(part.tokens_after for part in parts) + seen.opening
    saved = f"{100 * (before - after) / before:.0f} % saved" if after < before else ""
    rows: list[tuple[str | int, ...]] = []
    for part in parts:
        name = f"summary {part.reference}" if part.reference else part.name
        sizes = part.messages, part.tokens_before, part.tokens_after
        rows.append((name, *sizes, in_flags(part.why)))
    rows.append(("total", f"{len(seen.messages):,} -> {view_messages:,}", before, after, saved))
    styles = ["yellow" if part.segment or part.to_write else "" for part in parts]
    return Table(("part", "messages#", "tokens#", "after#", "what"), rows, styles)


def _method(result: CompressResult, model: str | None, *, asked: bool) -> str:
    """Return a sentence on how the view was made."""
    used = result.usage
    if result.summary_method is None and result.context_status == "masked":
        return "Method: masks; no summary was needed, no model was asked."
    if result.summary_method is None:
        why = "nothing to gain" if asked else "it fits, so nothing was compressed"
        return f"Method: none; {why}. --target or --window ask for less, --force for it anyway."
    if result.summary_method == "reused":
        return "Method: reused from the store; nothing was summarized again."
    if result.summary_method == "model":
        cost = "" if used.cost is None else f", {money(used.cost)}"
        numbers = f"{number(used.prompt_tokens)} tokens read, {number(used.completion_tokens)}"
        return f"Method: model ({model}: {numbers} written{cost})."
    if model is None:
        return "Method: static (no model was given; --auxiliary-model has one write the summary)."
    return f"Method: static, because {model} gave no usable summary."


def _savings(result: CompressResult) -> Iterator[str]:
    if result.masked_secrets:
        yield f"Masked in the archive: {pluralize(result.masked_secrets, 'secret')}."
    if result.cost_saved:
        cached = result.cost_saved_cached
        least = f", or {money(cached)} where the provider's cache serves them" if cached else ""
        yield (
            f"Saved in this and every later request: {number(result.tokens_saved)} tokens, "
            f"{money(result.cost_saved)} at the listed input price{least}."
        )


def _part_json(part: Part) -> dict[str, Any]:
    names = "name reference start messages tokens_before tokens_after masked to_write why"
    return {**{name: getattr(part, name) for name in names.split()}, "summary": summary_of(part)}


def summary_of(part: Part) -> str | None:
    """Return a summary's text without its frame, or None."""
    return unframe({"role": "user", "content": part.text}) if part.text else None


# ---------------------------------------------------------------- inspect


@par.command
@par.argument("file")
@par.switch("--messages", "Print a line for each message.")
@par.call
@par.CONVERSATION
@par.configured
@par.AS_JSON
def inspect(
    file: str,
    conversation: int | None,
    messages: bool,
    call: par.CallOptions,
    config: CompressorConfig,
    as_json: bool,
) -> None:
    """Show what would be kept, masked and summarized, and why.

    Prints references, tokens and the replacement texts. Calls no model and writes nothing. Takes
    FILE and the options of `compress`; `compress` with the same options does what was shown.

    $ praison-compressor inspect talk.jsonl --window 32k --messages
    """
    transcript = read_one(file, conversation)
    absent = _absent(config.store_url)
    with progress("Counting tokens", len(transcript)) as step:
        tokens = Watched(config.model, step)
        # `inspect` does not create a missing store.
        store = MemoryStore() if absent else None
        compressor = ContextCompressor(par.with_window(config), store=store, tokens=tokens)
        if call.choices:
            compressor.preview(transcript, **call.options)
        seen = compressor.preview(transcript, **call.options, **call.choices)
    fates = list(_fates(seen)) if messages or as_json else []
    names = ("limits", "budget", "tokens", "tokens_after", "balance", "would_compress", "repaired")
    value = {
        "file": file,
        "tokenizer": {"source": tokens.source, "exact": tokens.exact},
        **{name: getattr(seen, name) for name in names},
        "parts": list(map(_part_json, seen.parts)),
        "messages": [dict(zip(COLUMNS, fate, strict=True)) for fate in fates],
    }

    def shown() -> Iterator[Piece]:
        target = call.target and f"Target {number(call.target)} tokens."
        yield target or _budget_line(seen, config)
        if absent:
            yield f"There is no {absent} yet: no segment is found again."
        yield f"Tokens: {tokens.source}{', exact' if tokens.exact else ''}."
        kept = (1 if part.segment or part.to_write else part.messages for part in seen.parts)
        yield _parts_table(seen, seen.parts, sum(kept))
        yield _verdict(seen)
        if seen.balance is not None:
            yield f"{seen.balance}"
        if messages:
            yield _messages_table(fates)
        yield from _texts(seen)

    answer(value, shown(), as_json)


COLUMNS = ("index", "reference", "role", "fate", "tokens", "text")
"""Of a message: its fate is "keep", "mask" or the name of its summary."""


def _absent(url: str | None) -> str | None:
    """Return the place of a missing store, or None."""
    if url is None:
        return None
    with par.ledger(url, new=True) as store:
        return None if store.exists() else store.place


def _fates(seen: Preview) -> Iterator[tuple[int, str, str, str, int, str]]:
    """Yield a row of `COLUMNS` for each message.

    The text is the line that replaces a masked output, else the message's beginning.
    """
    for index, fate in seen.fates():
        message = seen.messages[index]
        text = seen.lines.get(index) if fate == "mask" else None
        reference, tokens = seen.references[index], seen.message_tokens[index]
        yield index, reference, str(message.get("role")), fate, tokens, text or _beginning(message)


def _beginning(message: Message) -> str:
    calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
    return truncate_line(" ".join([*calls, text_of(message)]), 80)


def _messages_table(fates: Sequence[tuple[int, str, str, str, int, str]]) -> Table:
    styles = [{"keep": "", "mask": "cyan"}.get(fate[3], "yellow") for fate in fates]
    heads = ("index#", "reference", "role", "fate", "tokens#", "text")
    return Table(heads, fates, styles, spare=("role",))


def _texts(seen: Preview) -> Iterator[Piece]:
    """Yield the text of each summary that would be written."""
    for part in seen.parts:
        if part.to_write and (text := summary_of(part)):
            yield from titled(f"{part.reference} would be", text)
        elif part.to_write:
            yield f"{part.reference}: the auxiliary model writes the text when `compress` asks it."


def _budget_line(seen: Preview, config: CompressorConfig) -> str:
    budget, source = seen.budget, in_flags(seen.limits.source)
    if config.model is None and config.context_window is None:
        source = "assumed; set --model or --window"
    return (
        f"Window {number(seen.limits.window)} tokens ({source}), "
        f"{number(budget.limit)} of them usable: compress above {number(budget.trigger)}, "
        f"down to {number(budget.target)}."
    )


REASONS = {
    "fixed part": "what cannot be dropped takes more than the trigger",
    "no gain": "a compression would not gain enough to be worth it",
    "price": "a compression would cost more than it saves yet",
}
"""Why nothing is compressed, in words."""


def _verdict(seen: Preview) -> str:
    if not seen.would_compress:
        left = number(seen.budget.trigger - seen.tokens + seen.opening)
        why = REASONS.get(seen.reason, f"it fits, {left} tokens below the trigger")
        return f"Nothing would be done: {why}."
    if seen.new_masks:
        masks = pluralize(seen.new_masks, "tool output")
        return f"Masking alone is enough: {masks}, no model call. --messages shows their lines."
    return f"{pluralize(seen.would_write, 'summary', 'summaries')} would be written."
