"""`compress` and `inspect`: what the library does with a transcript in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Part, Preview
from ..compressor.result import CompressResult
from ..config import Event
from ..facts import Coverage, coverage
from ..ledger.memory import MemoryStore
from ..messages import text_of, tool_calls_of
from ..messages.display import excerpt, kind_in_words, one_line
from ..view.frame import is_framed, unframe
from .options import OfFile, Out, Reading, command, flag
from .terminal import Answer, Piece, Table, money, number, titled
from .transcripts import read_one, writable, write

# ---------------------------------------------------------------- compress


@command
def compress(
    given: Reading,
    config: OfFile,
    out: Out = None,
    show: Annotated[bool, flag("--show", "Print the text of the summaries too.")] = False,
) -> Answer:
    """Compress a transcript: head and tail stay verbatim, the middle becomes a summary.

    Reads a JSON list of chat messages, {"messages": [...]}, or JSON Lines with one message a line
    or one conversation a line. The file itself is never changed. `--tool-policies keep_none` turns
    old tool outputs into one line each, and asks for no summary while that is enough for --target.

    $ praison-compressor compress talk.jsonl --window 32k --out view.jsonl
    """
    messages = read_one(given.file, given.conversation)
    if out is not None:
        writable(out, source=given.file)
    failures, hear = listener()
    config = given.configured(config)
    compressor = ContextCompressor(config, on_event=hear)
    result = compressor.compress_sync(messages, **given.call)
    # What it has just become: nothing is asked or written for that.
    seen = compressor.preview(messages, session_id=given.session)
    parts = [(part, _held(part, result)) for part in seen.parts]
    if out is not None:
        write(out, result.messages, source=given.file)
    names = (
        "session_id parent_session_id context_status summary_method tokens_before tokens_after "
        "tokens_saved masked_secrets cost_saved cost_saved_cached usage"
    )
    value = {
        "file": given.file,
        **{name: getattr(result, name) for name in names.split()},
        "unverified": [doubt._asdict() for doubt in result.unverified],
        "failures": failures,
        "parts": [{**_part_json(part), "facts": _facts_json(held)} for part, held in parts],
        "messages": None if out else result.messages,
    }

    def shown() -> Iterator[Piece]:
        what = [_what(part, held) for part, held in parts]
        yield _parts_table(seen, what, len(result.messages))
        yield from _method(result, given, config.auxiliary_model)
        yield from (f"  {failure}" for failure in failures)
        yield from _kept(given.session, result.session_id, config.store_url)
        if config.store_url is None and any(map(is_framed, messages)):
            yield (
                "It holds a summary already: without the store of that (--store) it is text like "
                "any other, and the rules in it bind no more."
            )
        for part, held in parts:
            if held is not None and held.total:
                kinds = (f"{kind_in_words(k)} {a:,}/{b:,}" for k, (a, b) in held.by_kind.items())
                yield f"Of {part.name} the view holds: {', '.join(kinds)}."
        for segment in result.segments if show else ():
            yield from titled("summary", unframe(segment.rendered))
        if out not in (None, "-"):
            yield f"Written to {out}"

    return Answer(value, shown(), on_stderr=out == "-")


def listener() -> tuple[list[str], Callable[[Event], None]]:
    """What a compressor's `on_event` hears of a model whose text was not taken: a list of reasons,
    and the function that fills it."""
    failures: list[str] = []

    def hear(event: Event) -> None:
        if event.name == "fell_back":
            failures.append(one_line(str(event.data.get("reason", ""))))

    return failures, hear


def _kept(session: str | None, epoch: str, store: str | None) -> Iterator[str]:
    """Under which name the session is found again."""
    if store is not None and session is None:
        yield f"Kept as session {epoch}; --session names it yourself."
    elif store is None and session is not None:
        yield f"Session {session} is kept nowhere; --store names a place for it."


def _held(part: Part, result: CompressResult) -> Coverage | None:
    """The facts that the view holds of what a new summary stands for; None for an earlier one."""
    rendered = part.segment and part.segment.rendered
    new = next((written for written in result.written if written.message == rendered), None)
    return None if new is None else result.coverage_in_view(new)


def _what(part: Part, held: Coverage | None) -> str:
    if part.segment is None or held is None:
        return part.why
    facts = f"; the view holds {held.covered:,} of its {held.total:,} facts" if held.total else ""
    return part.segment.method + facts


def _parts_table(seen: Preview, what: Sequence[str], view_messages: int) -> Table:
    """The parts with what is said of each, under it the whole with what frames every request."""
    parts = seen.parts
    before = sum(part.tokens_before for part in parts) + seen.opening
    after = sum(part.tokens_after for part in parts) + seen.opening
    saved = f"{100 * (before - after) / before:.0f} % saved" if after < before else ""
    rows: list[tuple[str | int, ...]] = [
        (part.name, part.messages, part.tokens_before, part.tokens_after, said)
        for part, said in zip(parts, what, strict=True)
    ]
    rows.append(("total", f"{len(seen.messages):,} -> {view_messages:,}", before, after, saved))
    styles = ["yellow" if part.segment or part.to_write else "" for part in parts]
    return Table(("part", "messages#", "tokens before#", "tokens after#", "what"), rows, styles)


def _method(result: CompressResult, given: Reading, model: str | None) -> Iterator[str]:
    """How the view came about and what it saves, in sentences."""
    used = result.usage
    if result.summary_method is None and result.context_status == "masked":
        yield "Method: masks; no summary was needed, no model was asked."
    elif result.summary_method is None:
        asked = given.force or given.target_tokens is not None
        tried = "nothing to gain" if asked else "it fits, so nothing was compressed"
        yield f"Method: none; {tried}. --target or --window ask for less, --force for it anyway."
    elif result.summary_method == "reused":
        yield "Method: reused from the store; nothing was written anew."
    elif result.summary_method == "model":
        cost = "" if used.cost is None else f", {money(used.cost)}"
        numbers = f"{number(used.prompt_tokens)} tokens read, {number(used.completion_tokens)}"
        yield f"Method: model ({model}: {numbers} written{cost})."
    elif model is None:
        yield "Method: static (no model was given; --auxiliary-model has one write the summary)."
    else:
        yield f"Method: static, because {model} gave no usable summary."
    for doubt in result.unverified:
        yield f"Marked: {doubt.told()}"
    if result.masked_secrets:
        yield f"Keys and tokens masked in the archive: {number(result.masked_secrets)}."
    if result.cost_saved:
        cached = result.cost_saved_cached
        least = f"; {money(cached)} where its cache would have served them" if cached else ""
        yield (
            f"Saved: {number(result.tokens_saved)} tokens, {money(result.cost_saved)} in this "
            f"and every later request at the listed input price{least}."
        )


def _part_json(part: Part) -> dict[str, Any]:
    names = "name start messages tokens_before tokens_after masked to_write why"
    summary = unframe(part.segment.rendered) if part.segment else None
    return {**{name: getattr(part, name) for name in names.split()}, "summary": summary}


def _facts_json(held: Coverage | None) -> dict[str, Any] | None:
    if held is None:
        return None
    kinds = {kind: {"held": a, "found": b} for kind, (a, b) in held.by_kind.items()}
    return {"held": held.covered, "found": held.total, "by_kind": kinds}


# ---------------------------------------------------------------- inspect


@command
def inspect(
    given: Reading,
    config: OfFile,
    messages: Annotated[bool, flag("--messages", "A line for each message.")] = False,
) -> Answer:
    """Show what would be kept, masked and summarized, and why, without doing it.

    Asks no model and writes nothing. Takes the options of `compress`.

    $ praison-compressor inspect talk.jsonl --window 32k --messages
    """
    transcript = read_one(given.file, given.conversation)
    assumed = config.model is None and config.context_window is None
    config = given.configured(config)
    absent = given.absent()
    # A store that was not made yet is not made for a look at it.
    compressor = ContextCompressor(config, store=MemoryStore() if absent else None)
    seen, tokens = compressor.preview(transcript, **given.call), compressor.tokens
    # The facts that matter, by kind: as `compress` counts them when it says how many it holds.
    found = coverage(seen.facts, "").by_kind if seen.facts is not None else None
    facts = None if found is None else {kind: total for kind, (_, total) in found.items()}
    fates, columns = list(_fates(seen)), ("index", "role", "fate", "tokens")
    value = {
        "file": given.file,
        "tokenizer": {"source": tokens.source, "exact": tokens.exact},
        **{name: getattr(seen, name) for name in ("limits", "budget", "tokens")},
        **{name: getattr(seen, name) for name in ("would_compress", "repaired")},
        "parts": list(map(_part_json, seen.parts)),
        "facts": facts,
        "messages": [dict(zip(columns, fate, strict=False)) for fate in fates],
    }

    def shown() -> Iterator[Piece]:
        parts = seen.parts
        yield _budget_line(seen, assumed)
        if absent:
            yield f"There is no {absent} yet: no segment is found again."
        yield f"Tokens: {tokens.source}{', exact' if tokens.exact else ''}."
        sent = sum(1 if part.segment or part.to_write else part.messages for part in parts)
        yield _parts_table(seen, [part.why for part in parts], sent)
        yield _verdict(seen)
        if facts is not None:
            said = ", ".join(f"{kind_in_words(kind)} {count:,}" for kind, count in facts.items())
            yield f"Facts found there, for the summary to hold: {said or 'none'}."
        if messages:
            styles = [{"keep": "", "mask": "cyan"}.get(fate[2], "yellow") for fate in fates]
            yield Table((*columns[:3], "tokens#", "begins"), fates, styles)

    return Answer(value, shown())


def _fates(seen: Preview) -> Iterator[tuple[int, str, str, int, str]]:
    """What becomes of each message, and how it begins."""
    for index, fate in seen.fates():
        message = seen.messages[index]
        calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
        begins = excerpt(" ".join([*calls, text_of(message)]), 80)
        yield index, str(message.get("role")), fate, seen.message_tokens[index], begins


def _budget_line(seen: Preview, assumed: bool) -> str:
    budget = seen.budget
    if budget.limit == budget.trigger:
        return f"Target {number(budget.target + seen.opening)} tokens, whatever the window."
    source = "assumed; --model or --window says otherwise" if assumed else seen.limits.source
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
        return f"Masking alone is enough: {seen.new_masks} tool outputs, no model call."
    jobs = seen.would_write
    return f"{jobs} {'summary' if jobs == 1 else 'summaries'} would be written."
