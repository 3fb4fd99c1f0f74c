"""`compress` and `inspect`: what the library does with a transcript in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Part, Preview
from ..compressor.result import CompressResult
from ..config import CompressorConfig
from ..events import Event
from ..ledger.memory import MemoryStore
from ..messages import text_of, tool_calls_of
from ..messages.display import excerpt, one_line
from ..view.frame import is_framed, unframe
from . import parameters as par
from .terminal import Piece, Table, answer, counted, money, number, titled
from .transcripts import read_one, writable, write


def compress(
    file: par.File,
    out: par.Out = None,
    show: Annotated[bool, typer.Option("--show", help="Print the summaries too.")] = False,
    target: par.Target = None,
    force: par.Force = False,
    model: par.Model = None,
    window: par.Window = None,
    keep_tokens: par.KeepTokens = None,
    auxiliary_model: par.AuxiliaryModel = None,
    pin: par.Pin = None,
    settings: par.Setting = None,
    conversation: par.Conversation = None,
    session: par.InSession = None,
    store: par.StoreUrl = None,
    namespace: par.Namespace = par.DEFAULT,
    as_json: par.AsJson = False,
) -> None:
    """Compress a transcript.

    Head and tail stay verbatim, the middle becomes a summary. The file itself is never changed.

    FILE holds a JSON list of chat messages, {"messages": [...]}, or JSON Lines with one message a
    line or one conversation a line. `--set tool_policies=keep_none` turns old tool outputs into
    one line each; where that is enough, no summary is written.

    $ praison-compressor compress talk.jsonl --window 32k --out view.jsonl
    """
    messages = read_one(file, conversation)
    if out is not None:
        writable(out, source=file)
    config = par.configured(
        store, namespace, settings, model, window, auxiliary_model, keep_tokens, pin
    )
    failures: list[str] = []
    compressor = ContextCompressor(
        par.with_window(config), on_event=lambda event: failures.extend(_failure(event))
    )
    result = compressor.compress_sync(
        messages, session_id=session, target_tokens=target, force=force
    )
    # The preview of what was just compressed writes nothing and asks no model.
    seen = compressor.preview(messages, session_id=session)
    if out is not None:
        write(out, result.messages, source=file)
    names = (
        "session_id parent_session_id context_status summary_method tokens_before tokens_after "
        "tokens_saved masked_secrets cost_saved cost_saved_cached usage"
    )
    value = {
        "file": file,
        **{name: getattr(result, name) for name in names.split()},
        "failures": failures,
        "parts": list(map(_part_json, seen.parts)),
        "messages": None if out else result.messages,
    }

    def shown() -> Iterator[Piece]:
        yield _parts_table(seen, len(result.messages))
        yield _method(result, config.auxiliary_model, asked=force or target is not None)
        yield from (f"  {failure}" for failure in failures)
        yield from _savings(result)
        yield from _place(session, result.session_id, config)
        if config.store_url is None and any(map(is_framed, messages)):
            yield "The file holds a summary. Without its store (--store) it is ordinary text."
        for segment in result.segments if show else ():
            yield from titled("summary", unframe(segment.rendered))
        if out not in (None, "-"):
            yield f"Written to {out}"

    answer(value, shown(), as_json, file=sys.stderr if out == "-" else None)


def _failure(event: Event) -> Iterator[str]:
    """Yield why a model's text was not taken."""
    if event.name == "fell_back":
        yield one_line(str(event.data.get("reason", "")))


def _place(session: str | None, epoch: str, config: CompressorConfig) -> Iterator[str]:
    """Yield where the session is kept, and under which name."""
    if config.store_url is not None and session is None:
        yield f"Kept as session {epoch}; --session names it yourself."
    elif config.store_url is None and session is not None:
        yield f"Session {session} is kept nowhere; --store names a place for it."


def _parts_table(seen: Preview, view_messages: int) -> Table:
    """Return a row for each part of a view, and the total."""
    parts = seen.parts
    before = sum(part.tokens_before for part in parts) + seen.opening
    after = sum(part.tokens_after for part in parts) + seen.opening
    saved = f"{100 * (before - after) / before:.0f} % saved" if after < before else ""
    rows: list[tuple[str | int, ...]] = [
        (part.name, part.messages, part.tokens_before, part.tokens_after, part.why)
        for part in parts
    ]
    rows.append(("total", f"{len(seen.messages):,} -> {view_messages:,}", before, after, saved))
    styles = ["yellow" if part.segment or part.to_write else "" for part in parts]
    columns = ("part", "messages#", "tokens before#", "tokens after#", "what")
    return Table(columns, rows, styles, spare=("messages#",))


def _method(result: CompressResult, model: str | None, *, asked: bool) -> str:
    """Return a sentence on how the view was made."""
    used = result.usage
    if result.summary_method is None and result.context_status == "masked":
        return "Method: masks; no summary was needed, no model was asked."
    if result.summary_method is None:
        why = "nothing to gain" if asked else "it fits, so nothing was compressed"
        return f"Method: none; {why}. --target or --window ask for less, --force for it anyway."
    if result.summary_method == "reused":
        return "Method: reused from the store; nothing was written."
    if result.summary_method == "model":
        cost = "" if used.cost is None else f", {money(used.cost)}"
        numbers = f"{number(used.prompt_tokens)} tokens read, {number(used.completion_tokens)}"
        return f"Method: model ({model}: {numbers} written{cost})."
    if model is None:
        return "Method: static (no model was given; --auxiliary-model has one write the summary)."
    return f"Method: static, because {model} gave no usable summary."


def _savings(result: CompressResult) -> Iterator[str]:
    if result.masked_secrets:
        yield f"Masked in the archive: {counted(result.masked_secrets, 'secret')}."
    if result.cost_saved:
        cached = result.cost_saved_cached
        least = f", or {money(cached)} where the provider's cache serves them" if cached else ""
        yield (
            f"Saved in this and every later request: {number(result.tokens_saved)} tokens, "
            f"{money(result.cost_saved)} at the listed input price{least}."
        )


def _part_json(part: Part) -> dict[str, Any]:
    names = "name start messages tokens_before tokens_after masked to_write why"
    summary = unframe(part.segment.rendered) if part.segment else None
    return {**{name: getattr(part, name) for name in names.split()}, "summary": summary}


# ---------------------------------------------------------------- inspect


def inspect(
    file: par.File,
    messages: Annotated[
        bool, typer.Option("--messages", help="Print a line for each message.")
    ] = False,
    target: par.Target = None,
    force: par.Force = False,
    model: par.Model = None,
    window: par.Window = None,
    keep_tokens: par.KeepTokens = None,
    auxiliary_model: par.AuxiliaryModel = None,
    pin: par.Pin = None,
    settings: par.Setting = None,
    conversation: par.Conversation = None,
    session: par.InSession = None,
    store: par.StoreUrl = None,
    namespace: par.Namespace = par.DEFAULT,
    as_json: par.AsJson = False,
) -> None:
    """Show what would be kept, masked and summarized, and why.

    Changes nothing: asks no model, writes nothing. Takes the options of `compress`.

    $ praison-compressor inspect talk.jsonl --window 32k --messages
    """
    transcript = read_one(file, conversation)
    config = par.configured(
        store, namespace, settings, model, window, auxiliary_model, keep_tokens, pin
    )
    is_assumed = config.model is None and config.context_window is None
    absent = _absent(config.store_url)
    # `inspect` does not create a missing store.
    compressor = ContextCompressor(par.with_window(config), store=MemoryStore() if absent else None)
    seen = compressor.preview(transcript, session_id=session, target_tokens=target, force=force)
    tokens = compressor.tokens
    fates, columns = list(_fates(seen)), ("index", "role", "fate", "tokens")
    names = ("limits", "budget", "tokens", "would_compress", "repaired")
    value = {
        "file": file,
        "tokenizer": {"source": tokens.source, "exact": tokens.exact},
        **{name: getattr(seen, name) for name in names},
        "parts": list(map(_part_json, seen.parts)),
        "messages": [dict(zip(columns, fate, strict=False)) for fate in fates],
    }

    def shown() -> Iterator[Piece]:
        yield _budget_line(seen, assumed=is_assumed)
        if absent:
            yield f"There is no {absent} yet: no segment is found again."
        yield f"Tokens: {tokens.source}{', exact' if tokens.exact else ''}."
        kept = (1 if part.segment or part.to_write else part.messages for part in seen.parts)
        yield _parts_table(seen, sum(kept))
        yield _verdict(seen)
        if messages:
            yield _messages_table(fates)

    answer(value, shown(), as_json)


def _absent(url: str | None) -> str | None:
    """Return the place of a missing store, or None."""
    if url is None:
        return None
    with par.ledger(url, new=True) as store:
        return None if store.is_there() else store.place


def _fates(seen: Preview) -> Iterator[tuple[int, str, str, int, str]]:
    """Yield index, role, fate, tokens and beginning of each message."""
    for index, fate in seen.fates():
        message = seen.messages[index]
        calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
        begins = excerpt(" ".join([*calls, text_of(message)]), 80)
        yield index, str(message.get("role")), fate, seen.message_tokens[index], begins


def _messages_table(fates: Sequence[tuple[int, str, str, int, str]]) -> Table:
    styles = [{"keep": "", "mask": "cyan"}.get(fate[2], "yellow") for fate in fates]
    return Table(("index#", "role", "fate", "tokens#", "begins"), fates, styles)


def _budget_line(seen: Preview, *, assumed: bool) -> str:
    budget = seen.budget
    if budget.limit == budget.trigger:
        return f"Target {number(budget.target + seen.opening)} tokens, whatever the window."
    source = "assumed; set --model or --window" if assumed else seen.limits.source
    return (
        f"Window {number(seen.limits.window)} tokens ({source}), "
        f"{number(budget.limit)} of them usable: compress above {number(budget.trigger)}, "
        f"down to {number(budget.target)}."
    )


def _verdict(seen: Preview) -> str:
    left = seen.budget.trigger - seen.tokens + seen.opening
    if not seen.would_compress and left >= 0:
        return f"Nothing would be done: it fits, {number(left)} tokens below the trigger."
    if not seen.would_compress:
        return "Nothing would be done: a compression would not gain enough to be worth it."
    if seen.new_masks:
        return f"Masking alone is enough: {counted(seen.new_masks, 'tool output')}, no model call."
    return f"{counted(seen.would_write, 'summary', 'summaries')} would be written."
