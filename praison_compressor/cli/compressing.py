"""Compress a transcript in a file, or preview that: `compress`, `inspect`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..compressor.context_compressor import ContextCompressor
from ..compressor.decision import SKIP_WORDS
from ..compressor.preview import Part, Preview
from ..compressor.result import CompressResult
from ..config import CompressorConfig
from ..events import Event
from ..ledger.memory_store import MemoryStore
from ..messages import Message, text_of, tool_calls_of
from ..messages.display import format_dollars, one_line, pluralize, truncate_line
from ..view.frame import is_framed, unframe
from .parameters import (
    AS_JSON,
    TranscriptArguments,
    command,
    open_ledger,
    option,
    with_config,
    with_guessed_window,
    with_transcript,
)
from .terminal import (
    Block,
    Table,
    check_writable,
    mute_log,
    options_as_flags,
    print_answer,
    show_progress,
    with_title,
    write_messages,
)


@command
@with_transcript
@option("--out FILE", "Write the view there (.jsonl: JSON Lines); - is stdout.")
@option("--show", "Print the summaries too.")
@with_config
@AS_JSON
def compress(
    given: TranscriptArguments,
    out: str | None,
    show: bool,
    config: CompressorConfig,
    as_json: bool,
) -> None:
    """Compress a transcript.

    Head and tail stay verbatim, the middle becomes a summary. The file itself is never changed.

    FILE holds a JSON list of chat messages, {"messages": [...]}, or JSON Lines with one message a
    line or one conversation a line; - is standard input. `--set tool_policies=keep_none` replaces
    each old tool output by one line. If that is enough, no summary is written.

    $ praison-compressor compress talk.jsonl --window 32k --out view.jsonl
    """
    if out is not None:
        check_writable(out, source=given.file)
    outcome = _compress(given, config)
    if out is not None:
        write_messages(out, outcome.result.messages, source=given.file)
    value = {
        "file": given.file,
        **_fields_json(outcome.result, RESULT_FIELDS),
        "failures": outcome.failures,
        "parts": _parts_json(outcome.preview.parts),
        "messages": None if out else outcome.result.messages,
    }
    target = TARGETS.get(out) or f"to {out}"
    blocks = [*_outcome_blocks(outcome, given, config, show), f"View written {target}."]
    print_answer(value, blocks, as_json, file=sys.stderr if out == "-" else None)


class Outcome(NamedTuple):
    """A compression's result, its view in parts, and its failures."""

    result: CompressResult
    preview: Preview
    failures: list[str]


def _outcome_blocks(
    outcome: Outcome, given: TranscriptArguments, config: CompressorConfig, show: bool
) -> Iterator[Block]:
    result = outcome.result
    yield _parts_table(outcome.preview, len(result.messages))
    yield _method_sentence(result, given, config)
    yield from (f"  {reason}" for reason in outcome.failures)
    yield from _savings_lines(result)
    yield from _session_notes(given, result, config)
    if show:
        for segment in result.segments:
            yield from with_title("summary", unframe(segment.rendered))


def _compress(given: TranscriptArguments, config: CompressorConfig) -> Outcome:
    events: list[Event] = []
    with show_progress("Compressing"), mute_log():  # the failures are printed
        compressor = _make_compressor(given, config, on_event=events.append)
        result = compressor.compress_sync(given.messages, **given.arguments, **given.selection)
        # `until=0` compresses nothing more: the preview shows the view that was made.
        preview = compressor.preview(given.messages, session_id=given.session, until=0)
    failures = [one_line(str(e.data["reason"])) for e in events if e.name == "fell_back"]
    parts = tuple(_mark_written(preview.parts, result))
    return Outcome(result, replace(preview, parts=parts), failures)


def _make_compressor(
    given: TranscriptArguments, config: CompressorConfig, **settings: Any
) -> ContextCompressor:
    compressor = ContextCompressor(with_guessed_window(config), **settings)
    if given.selection:  # a preview gives references to messages
        compressor.preview(given.messages, **given.arguments)
    return compressor


TARGETS = {None: "nowhere; --out FILE writes it", "-": "to stdout"}

RESULT_FIELDS = (
    "session_id parent_session_id context_status summary_method tokens_before tokens_after "
    "tokens_saved redacted_secrets cost_saved cost_saved_cached usage"
).split()
PREVIEW_FIELDS = (
    "window window_source limit trigger target tokens tokens_after balance would_compress repaired"
).split()
PART_FIELDS = "name reference start messages tokens_before tokens_after masked to_write why".split()
"""Fields of a result, a preview and a part that `--json` prints."""


def _mark_written(parts: Iterable[Part], result: CompressResult) -> Iterator[Part]:
    writers = {unframe(text.message): text.model or text.method for text in result.written}
    for part in parts:
        writer = writers.get(unframe(part.segment.rendered)) if part.segment else None
        yield part if writer is None else replace(part, why=f"summarized now ({writer})")


def _session_notes(
    given: TranscriptArguments, result: CompressResult, config: CompressorConfig
) -> Iterator[str]:
    if config.store_url is None:
        if given.session is not None:
            yield f"Session {given.session} is kept nowhere; --store names a place for it."
        if any(map(is_framed, given.messages)):
            yield "The file holds a summary. Without its store (--store) it is ordinary text."
    elif result.context_status == "full":
        yield "Nothing was stored: a session is stored when it is first compressed."
    else:
        hint = "" if given.session else "; --session ID gives it another name"
        yield f"Kept as session {given.session or result.session_id}{hint}."


def _parts_table(preview: Preview, view_messages: int) -> Table:
    parts = preview.parts
    before = sum(part.tokens_before for part in parts) + preview.opening
    after = sum(part.tokens_after for part in parts) + preview.opening
    saved = f"{100 * (before - after) / before:.0f} % saved" if after < before else ""
    rows: list[tuple[str | int, ...]] = []
    for part in parts:
        name = f"summary {part.reference}" if part.reference else part.name
        sizes = part.messages, part.tokens_before, part.tokens_after
        rows.append((name, *sizes, options_as_flags(part.why)))
    rows.append(("total", f"{len(preview.messages):,} -> {view_messages:,}", before, after, saved))
    styles = ["yellow" if part.segment or part.to_write else "" for part in parts]
    return Table(("part", "messages#", "tokens#", "after#", "what"), rows, styles, wraps=True)


def _method_sentence(
    result: CompressResult, given: TranscriptArguments, config: CompressorConfig
) -> str:
    model = config.auxiliary_model
    if result.summary_method is None and result.context_status == "masked":
        return "Method: masks; no summary was needed, no model was asked."
    if result.summary_method is None:
        is_requested = given.force or given.target
        why = "nothing to gain" if is_requested else "it fits, so nothing was compressed"
        remedy = "--target or --window lowers the limit; --force compresses anyway"
        return f"Method: none; {why}. {remedy}."
    if result.summary_method == "reused":
        return "Method: reused from the store; nothing was summarized again."
    if result.summary_method == "model":
        usage = result.usage
        cost = "" if usage.cost is None else f", {format_dollars(usage.cost)}"
        numbers = f"{usage.prompt_tokens:,} tokens read, {usage.completion_tokens:,}"
        return f"Method: model ({model}: {numbers} written{cost})."
    if model is None:
        return (
            "Method: static (no model was given; --auxiliary-model names the model that writes it)."
        )
    return f"Method: static, because {model} gave no usable summary."


def _savings_lines(result: CompressResult) -> Iterator[str]:
    if result.redacted_secrets:
        yield f"Redacted in the archive: {pluralize(result.redacted_secrets, 'secret')}."
    if result.cost_saved:
        cached = result.cost_saved_cached
        least = (
            f", or {format_dollars(cached)} where the provider's cache serves them"
            if cached
            else ""
        )
        yield (
            f"Saved in this and every later request: {result.tokens_saved:,} tokens, "
            f"{format_dollars(result.cost_saved)} at the listed input price{least}."
        )


def _parts_json(parts: Iterable[Part]) -> list[dict[str, Any]]:
    return [{**_fields_json(part, PART_FIELDS), "summary": summary_of(part)} for part in parts]


def _fields_json(value: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def summary_of(part: Part) -> str | None:
    """Return a summary's text without its frame, or None."""
    return unframe({"role": "user", "content": part.text}) if part.text else None


# ---------------------------------------------------------------- inspect


@command
@with_transcript
@option("--messages", "Print a line for each message.")
@with_config
@AS_JSON
def inspect(
    given: TranscriptArguments, messages: bool, config: CompressorConfig, as_json: bool
) -> None:
    """Show what would be kept, masked and summarized, and why.

    The command prints references, tokens and the replacement texts. No model is called and nothing
    is written. FILE and the options are those of `compress`, which then does what was shown.

    $ praison-compressor inspect talk.jsonl --window 32k --messages
    """
    missing_store = _missing_store(config)
    with show_progress("Counting tokens"):
        # `inspect` does not create a missing store.
        compressor = _make_compressor(given, config, store=MemoryStore() if missing_store else None)
        preview = compressor.preview(given.messages, **given.arguments, **given.selection)
    tokens = compressor.tokens
    rows = list(_message_rows(preview)) if messages or as_json else []
    value = {
        "file": given.file,
        "tokenizer": _fields_json(tokens, ("source", "exact")),
        **_fields_json(preview, PREVIEW_FIELDS),
        "parts": _parts_json(preview.parts),
        "messages": rows,
    }
    sizes = (1 if part.segment or part.to_write else part.messages for part in preview.parts)
    blocks: list[Block | None] = [
        _size_line(preview, given, config),
        f"There is no {missing_store} yet: no segment is found again." if missing_store else None,
        f"Tokens: {tokens.source}{', exact' if tokens.exact else ''}.",
        _parts_table(preview, sum(sizes)),
        _verdict(preview),
        str(preview.balance) if preview.balance else None,
        _messages_table(rows) if messages else None,
        *_summary_texts(preview),
    ]
    print_answer(value, filter(None, blocks), as_json)


def _missing_store(config: CompressorConfig) -> str | None:
    if config.store_url is None:
        return None
    with open_ledger(config, allow_missing=True) as store:
        return None if store.exists() else store.location


def _message_rows(preview: Preview) -> Iterator[dict[str, Any]]:
    """Yield each message of the transcript, with its fate in the view.

    The fate is "keep", "mask", "excerpt" or the reference of its summary.
    """
    for index, fate in preview.fates():
        message = preview.messages[index]
        result = preview.replaced_results.get(index)
        yield {
            "index": index,
            "reference": preview.references[index],
            "role": str(message.get("role")),
            "fate": fate,
            "tokens": preview.message_tokens[index],
            "text": text_of(result.rendered) if result else message_line(message, 80),
        }


def message_line(message: Message, width: int) -> str:
    """Return a message's calls and text, cut to `width` columns."""
    calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
    return truncate_line(" ".join([*calls, text_of(message)]), width)


def _messages_table(rows: Sequence[dict[str, Any]]) -> Table:
    colours = {"keep": "", "mask": "cyan", "excerpt": "cyan"}
    styles = [colours.get(row["fate"], "yellow") for row in rows]
    heads = ("index#", "reference", "role", "fate", "tokens#", "text")
    return Table(heads, [list(row.values()) for row in rows], styles, spare=("role",))


def _summary_texts(preview: Preview) -> Iterator[Block]:
    for part in preview.parts:
        if part.to_write and (text := summary_of(part)):
            yield from with_title(f"{part.reference} would be", text)
        elif part.to_write:
            yield f"{part.reference}: the auxiliary model writes the text when `compress` asks it."


def _size_line(preview: Preview, given: TranscriptArguments, config: CompressorConfig) -> str:
    if given.target:
        return f"Target {given.target:,} tokens."
    source = options_as_flags(preview.window_source)
    if config.model is None and config.context_window is None:
        source = "assumed; set --model or --window"
    return (
        f"Window {preview.window:,} tokens ({source}), "
        f"{preview.limit:,} of them usable: compress above {preview.trigger:,}, "
        f"down to {preview.target:,}."
    )


def _verdict(preview: Preview) -> str:
    if not preview.would_compress:
        left = preview.trigger - preview.tokens + preview.opening
        why = SKIP_WORDS.get(preview.reason, f"it fits, {left:,} tokens below the trigger")
        return f"Nothing would be done: {why}."
    outputs = f"{pluralize(preview.new_masks, 'tool output')} would be masked or cut"
    if preview.new_masks and not preview.would_write:
        return f"No summary is needed: {outputs}, no model call. --messages shows the lines."
    also = f" {outputs}." if preview.new_masks else ""
    return f"{pluralize(preview.would_write, 'summary', 'summaries')} would be written.{also}"
