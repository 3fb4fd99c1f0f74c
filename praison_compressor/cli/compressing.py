"""`compress`, `inspect` and `mask`: what the library does with a transcript in a file."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Part, Preview, named
from ..compressor.result import CompressResult
from ..events import Event
from ..facts import Coverage, coverage
from ..messages import Message, Transcript, digest, read, text_of, tool_calls_of
from ..messages.display import excerpt, kind_in_words, one_line
from ..tokens.counter import TokenCounter
from ..view.frame import unframe
from ..view.masks import mask as masked_message
from ..view.masks import maskable
from .options import (
    Conversation,
    File,
    ForModel,
    KeepTokens,
    Out,
    Reading,
    Writer,
    command,
    config_of,
    option,
)
from .terminal import Answer, Panel, Piece, Table, number, progress
from .transcripts import read_one, write

# ---------------------------------------------------------------- compress


@command
def compress(
    given: Reading,
    writer: Writer,
    out: Out = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the text of the summaries too.")
    ] = False,
) -> Answer:
    """Compress a transcript: head and tail stay verbatim, the middle becomes a summary.

    Reads a JSON list of chat messages, {"messages": [...]}, or JSON Lines with one message a line
    or one conversation a line. The file itself is never changed.
    """
    messages = read_one(given.file, given.conversation)
    failures: list[str] = []
    with _heard(failures, bar=writer.model is not None) as hear:
        compressor = ContextCompressor(given.config(writer), on_event=hear)
        result = compressor.compress_sync(messages, **given.call)
    originals = compressor.verbatim(messages, session_id=given.session)
    parts = parts_of(originals, result, compressor.tokens)
    if out is not None:
        write(out, result.messages, source=given.file)
    value = _result_json(given.file, result, parts, failures)
    if out is None:
        value["messages"] = result.messages

    def shown() -> Iterator[Piece]:
        opening = compressor.tokens.messages([])
        what = [_what(part, result) for part in parts]
        yield _parts_table(parts, what, view_messages=len(result.messages), opening=opening)
        yield from _method(result, given, writer.model)
        yield from (f"  {failure}" for failure in failures)
        yield from _facts_held(parts, result)
        if show:
            yield from (
                Panel(part.name, unframe(part.segment.rendered), "yellow")
                for part in parts
                if part.segment is not None
            )
        if out not in (None, "-"):
            yield f"Written to {out}"

    return Answer(value, shown(), on_stderr=out == "-")


@contextlib.contextmanager
def _heard(failures: list[str], *, bar: bool) -> Iterator[Callable[[Event], None]]:
    """A listener that collects failures of the model and moves a bar over the parts it reads."""
    # Parts are read side by side: how many are done is counted, not read off their number.
    done = itertools.count(1)
    with progress("the model reads, part", shown=bar) as update:

        def hear(event: Event) -> None:
            if event.name == "fell_back":
                failures.append(one_line(str(event.data.get("reason", ""))))
            if event.name == "part_summarized":
                update(next(done), event.data["parts"] + 1)

        yield hear


def parts_of(given: Sequence[Message], result: CompressResult, tokens: TokenCounter) -> list[Part]:
    """The parts of a view that was made of `given`."""
    originals = read(given).messages
    parts: list[Part] = []
    waiting = list(result.segments)
    at = 0
    for message in result.messages:
        segment = waiting.pop(0) if waiting and message == waiting[0].rendered else None
        end = at + (len(segment.run) if segment else 1)
        before = sum(map(tokens.message, originals[at:end]))
        masked = int(segment is None and digest(message) != digest(originals[at]))
        parts.append(Part("", at, end - at, before, tokens.message(message), masked, segment))
        at = end
    return named(parts)


def _parts_table(
    parts: Sequence[Part], what: Sequence[str], *, view_messages: int, opening: int
) -> Table:
    """The parts with what is said of each; `opening` are the tokens that frame every request."""
    before = sum(part.tokens_before for part in parts) + opening
    after = sum(part.tokens_after for part in parts) + opening
    messages = sum(part.messages for part in parts)
    saved = f"{100 * (before - after) / before:.0f} % saved" if after < before else ""
    rows = [
        (part.name, part.messages, part.tokens_before, part.tokens_after, said)
        for part, said in zip(parts, what, strict=True)
    ]
    total = ("total", f"{messages:,} -> {view_messages:,}", before, after, saved)
    return Table(
        ("part", "messages#", "tokens before#", "tokens after#", "what"),
        [*rows, total],
        ["yellow" if part.segment or part.to_write else "" for part in parts],
        last_is_total=True,
    )


def _method(result: CompressResult, given: Reading, model: str | None) -> Iterator[str]:
    """How the view came about and what it saves, in sentences."""
    used = result.usage
    if result.summary_method is None:
        asked = given.force or given.target is not None
        tried = "nothing to gain" if asked else "it fits, so nothing was compressed"
        yield f"Method: none; {tried}. --target or --window ask for less, --force for it anyway."
    elif result.summary_method == "reused":
        yield "Method: reused from the store; nothing was written anew."
    elif result.summary_method == "model":
        cost = "" if used.cost is None else f", ${used.cost:.4f}"
        yield (
            f"Method: model ({model}: {number(used.prompt_tokens)} tokens read, "
            f"{number(used.completion_tokens)} written{cost})."
        )
    elif model is None:
        yield "Method: static (no model was given; --model NAME has one write the summary)."
    else:
        yield f"Method: static, because {model} gave no usable summary."
    if result.ungrounded:
        yield f"Not in the originals, and marked so: {', '.join(result.ungrounded)}."
    if result.masked_secrets:
        yield f"Keys and tokens masked in the archive: {number(result.masked_secrets)}."
    if result.cost_saved:
        cached = result.cost_saved_cached
        least = f"; ${cached:.4f} where its cache would have served them" if cached else ""
        yield (
            f"Saved: {number(result.tokens_saved)} tokens, ${result.cost_saved:.4f} in this and "
            f"every later request at the listed input price{least}."
        )


def _what(part: Part, result: CompressResult) -> str:
    if part.segment is not None:
        held = _held(part, result)
        if held is None:
            return f"{part.segment.method}, found in the ledger"
        facts = f"; the view holds {held.covered:,} of its {held.total:,} facts"
        return part.segment.method + (facts if held.total else "")
    words = {
        "head": "system prompt and task, verbatim",
        "tail": "newest messages, verbatim",
        "all": "sent as it is",
    }
    masked = f"; {part.masked} of them masked or repaired" if part.masked else ""
    return words.get(part.name, "stays between two summaries") + masked


def _held(part: Part, result: CompressResult) -> Coverage | None:
    """The facts that the view holds of what a new summary stands for; None for an earlier one."""
    rendered = part.segment and part.segment.rendered
    new = next((written for written in result.written if written.message == rendered), None)
    return None if new is None else result.coverage_in_view(new)


def _facts_held(parts: Sequence[Part], result: CompressResult) -> Iterator[str]:
    for part in parts:
        held = _held(part, result)
        if held is not None and held.total:
            kinds = (f"{kind_in_words(k)} {a:,}/{b:,}" for k, (a, b) in held.by_kind.items())
            yield f"Of {part.name} the view holds: {', '.join(kinds)}."


def _result_json(
    file: str, result: CompressResult, parts: Sequence[Part], failures: list[str]
) -> dict[str, Any]:
    names = (
        "session_id parent_session_id context_status summary_method tokens_before tokens_after "
        "tokens_saved masked_secrets ungrounded cost_saved cost_saved_cached usage"
    )
    return {
        "file": file,
        **{name: getattr(result, name) for name in names.split()},
        "failures": failures,
        "parts": [
            {
                **_part_json(part),
                "what": _what(part, result),
                "summary": unframe(part.segment.rendered) if part.segment else None,
                "facts": _facts_json(_held(part, result)),
            }
            for part in parts
        ],
    }


def _part_json(part: Part) -> dict[str, Any]:
    return {
        "part": part.name,
        "first_index": part.start,
        "messages": part.messages,
        "tokens_before": part.tokens_before,
        "tokens_after": part.tokens_after,
        "masked": part.masked,
    }


def _facts_json(held: Coverage | None) -> dict[str, Any] | None:
    if held is None:
        return None
    kinds = {kind: {"held": a, "found": b} for kind, (a, b) in held.by_kind.items()}
    return {"held": held.covered, "found": held.total, "by_kind": kinds}


# ---------------------------------------------------------------- inspect


@command
def inspect(
    given: Reading,
    messages: Annotated[
        bool, typer.Option("--messages", help="A line for each message: its fate and its tokens.")
    ] = False,
) -> Answer:
    """Show what would be kept, masked and summarized, and why, without doing it.

    Asks no model and writes nothing. Takes the options of `compress`.
    """
    transcript = read_one(given.file, given.conversation)
    compressor = ContextCompressor(given.config())
    seen = compressor.preview(transcript, **given.call)
    is_assumed = given.window is None and given.for_model is None and given.target is None

    def shown() -> Iterator[Piece]:
        parts = seen.parts
        yield _budget_line(seen, is_assumed)
        yield f"Tokens: {compressor.tokens.source}{', exact' if compressor.tokens.exact else ''}."
        sent = sum(1 if part.segment or part.to_write else part.messages for part in parts)
        why = [part.why for part in parts]
        yield _parts_table(parts, why, view_messages=sent, opening=seen.opening)
        yield _verdict(seen)
        counts = _fact_counts(seen)
        if counts is not None:
            said = ", ".join(f"{kind_in_words(kind)} {count:,}" for kind, count in counts.items())
            yield f"Facts found there, for the summary to hold: {said or 'none'}."
        if messages:
            yield _fates_table(seen)

    return Answer(_preview_json(given.file, seen, compressor.tokens), shown())


def _budget_line(seen: Preview, is_assumed: bool) -> str:
    budget = seen.budget
    if budget.limit == budget.trigger:
        return f"Target {number(budget.target + seen.opening)} tokens, whatever the window."
    assumed = "assumed; --for-model or --window says otherwise"
    return (
        f"Window {number(seen.limits.window)} tokens "
        f"({assumed if is_assumed else seen.limits.source}), "
        f"{number(budget.limit)} of them usable: compress above {number(budget.trigger)}, "
        f"down to {number(budget.target)}."
    )


def _fact_counts(seen: Preview) -> dict[str, int] | None:
    """The facts that matter, by kind: as `compress` counts them when it says how many it holds."""
    if seen.facts is None:
        return None
    return {kind: total for kind, (_, total) in coverage(seen.facts, "").by_kind.items()}


def _verdict(seen: Preview) -> str:
    size = seen.tokens - seen.opening
    if not seen.would_compress and size <= seen.budget.trigger:
        left = number(seen.budget.trigger - size)
        return f"Nothing would be done: it fits, {left} tokens below the trigger."
    if not seen.would_compress:
        return "Nothing would be done: a compression would not gain enough to be worth it."
    if seen.new_masks:
        return f"Masking alone is enough: {seen.new_masks} tool outputs, no model call."
    jobs = seen.would_write
    return f"{jobs} {'summary' if jobs == 1 else 'summaries'} would be written."


def _fates(seen: Preview) -> list[dict[str, Any]]:
    """What becomes of each message."""
    return [
        {
            "index": index,
            "role": seen.messages[index].get("role"),
            "fate": fate,
            "tokens": seen.message_tokens[index],
        }
        for index, fate in seen.fates()
    ]


def _fates_table(seen: Preview) -> Table:
    rows, styles = [], []
    for told, message in zip(_fates(seen), seen.messages, strict=True):
        calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
        begins = excerpt(" ".join([*calls, text_of(message)]), 80)
        fate = told["fate"]
        rows.append((str(told["index"]), str(told["role"]), fate, told["tokens"], begins))
        styles.append({"keep": "", "mask": "cyan"}.get(fate, "yellow"))
    return Table(("index#", "role", "fate", "tokens#", "begins"), rows, styles)


def _preview_json(file: str, seen: Preview, tokens: TokenCounter) -> dict[str, Any]:
    return {
        "file": file,
        "window": seen.limits,
        "budget": seen.budget,
        "tokenizer": {"source": tokens.source, "exact": tokens.exact},
        "tokens": seen.tokens,
        "would_compress": seen.would_compress,
        "repaired": seen.repaired,
        "parts": [
            {**_part_json(part), "would_be_written": part.to_write, "why": part.why}
            for part in seen.parts
        ],
        "facts": _fact_counts(seen),
        "messages": _fates(seen),
    }


# ---------------------------------------------------------------- mask


@command
def mask(
    file: File,
    for_model: ForModel = None,
    keep_tokens: KeepTokens = None,
    above: Annotated[
        int | None,
        option("--above", "TOKENS", "Outputs up to this size stay (200)."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        option("--keep", "TOOL", "Never mask this tool's outputs; may be repeated."),
    ] = None,
    out: Out = None,
    conversation: Conversation = None,
) -> Answer:
    """Replace old tool outputs by one line each: what was called, its outcome, its size.

    The newest tokens stay as they are. Asks no model; the file itself is never changed.
    """
    transcript = read(read_one(file, conversation))
    config = config_of(
        model=for_model,
        protect_last_n_tokens=keep_tokens,
        mask_above_tokens=above,
        tool_policies=dict.fromkeys(keep or (), "keep"),
    )
    tokens = TokenCounter(config.model)
    messages = list(transcript.messages)
    counts = list(map(tokens.message, messages))
    end = _tail_start(transcript, counts, config.protect_last_n_tokens)
    calls = maskable(messages, counts, config)
    chosen = {index: found for index, found in calls.items() if index < end}
    view = messages.copy()
    for index, found in chosen.items():
        view[index] = masked_message(found, messages[index])
    if out is not None:
        write(out, view, source=file)
    before, after = tokens.messages(messages), tokens.messages(view)
    value = {
        "file": file,
        "masked": sorted(chosen),
        "tokens_before": before,
        "tokens_after": after,
        **({"messages": view} if out is None else {}),
    }
    rows: list[tuple[str | int, ...]] = []
    for index, found in chosen.items():
        tools = ", ".join(call.name for call in found.values())
        now = excerpt(text_of(view[index]), 60)
        rows.append((str(index), tools, counts[index], tokens.message(view[index]), now))
    rows.append(("all", "", before, after, f"{len(chosen)} outputs masked"))
    columns = ("index#", "tool", "tokens before#", "tokens after#", "now")
    return Answer(value, [Table(columns, rows, last_is_total=True)], on_stderr=out == "-")


def _tail_start(transcript: Transcript, counts: Sequence[int], keep_tokens: int) -> int:
    """Where the newest steps begin that fit into `keep_tokens`; the newest one always stays."""
    start, room = len(counts), keep_tokens
    for step in reversed(transcript.steps):
        room -= sum(counts[index] for index in step)
        if room < 0 and start < len(counts):
            break
        start = step.start
    return start
