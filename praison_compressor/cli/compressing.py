"""`compress` and `mask`: the library's verbs on a transcript in a file."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Part
from ..compressor.result import CompressResult
from ..events import Event, Listener
from ..facts import Coverage
from ..ledger.segments import Segment
from ..messages import Transcript, read, text_of
from ..messages.display import excerpt, kind_in_words, one_line
from ..summaries.protocol import Written
from ..tokens.counter import TokenCounter
from ..view.frame import unframe
from ..view.masks import mask as masked_message
from ..view.masks import maskable
from . import transcripts
from .failures import guarded
from .options import (
    ApiBase,
    AsJson,
    Conversation,
    File,
    ForModel,
    KeepTokens,
    Model,
    Reading,
    Timeout,
    config_of,
    reading,
)
from .terminal import Screen, number, of_result, progress, show

__all__ = [
    "compress",
    "mask",
]


# -------------------------------------------------------------- compressing


Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write the view there: JSON Lines for .jsonl, else a JSON list; - is standard output.",
    ),
]


Show = Annotated[bool, typer.Option("--show", help="Print the text of the summaries too.")]


@guarded
@reading
def compress(
    given: Reading,
    model: Model = None,
    api_base: ApiBase = None,
    timeout: Timeout = None,
    out: Out = None,
    show: Show = False,
    as_json: AsJson = False,
) -> None:
    """Compress a transcript: head and tail stay verbatim, the middle becomes a summary.

    Reads a JSON list of chat messages, {"messages": [...]}, or JSON Lines with one message a line
    or one conversation a line. The file itself is never changed.
    """
    messages = transcripts.read_one(given.file, given.conversation)
    watch = _Watch()
    with watch.progress(shown=model is not None):
        config = given.config(
            auxiliary_model=model, auxiliary_api_base=api_base, timeout_seconds=timeout
        )
        compressor = ContextCompressor(config, on_event=watch)
        result = compressor.compress_sync(messages, **given.call)
    rows = of_result(
        compressor.verbatim(messages, session_id=given.session), result, compressor.tokens
    )
    if out is not None:
        transcripts.write(out, result.messages, source=given.file)
    # A view on standard output leaves only stderr for the table.
    screen = Screen(sys.stderr if out == "-" else None)
    if as_json:
        screen.json(_as_json(given.file, result, rows, watch, with_messages=out is None))
        return
    forced = given.force or given.target is not None
    _print(screen, result, rows, model, watch, compressor, forced=forced)
    if show:
        _print_texts(screen, rows)
    if out not in (None, "-"):
        screen.say(f"Written to {out}")


class _Watch:
    """Hears the compressor's events: for a progress bar, and for what went wrong on the way."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self._on_part: Listener | None = None

    def __call__(self, event: Event) -> None:
        if event.name == "fell_back":
            self.failures.append(one_line(str(event.data.get("reason", ""))))
        if event.name == "part_summarized" and self._on_part is not None:
            self._on_part(event)

    @contextlib.contextmanager
    def progress(self, *, shown: bool) -> Iterator[None]:
        """A bar over the parts on stderr, where a person is waiting for a model."""
        with progress("the model reads, part", shown=shown) as update:
            # Parts are read side by side: how many are done is counted, not read off their number.
            done = itertools.count(1)
            self._on_part = lambda event: update(next(done), event.data["parts"] + 1)
            yield


def _print(
    screen: Screen,
    result: CompressResult,
    rows: list[Part],
    model: str | None,
    watch: _Watch,
    compressor: ContextCompressor,
    *,
    forced: bool,
) -> None:
    show(
        screen,
        rows,
        [_what(part, result) for part in rows],
        view_messages=len(result.messages),
        opens=compressor.tokens.messages([]),
    )
    for line in _method(result, model, watch, forced):
        screen.say(line)
    for part in rows:
        held = None if part.segment is None else _held(part.segment, result)
        if held is not None and held.total:
            kinds = (f"{kind_in_words(k)} {a:,}/{b:,}" for k, (a, b) in held.by_kind.items())
            screen.say(f"Of {part.name} the view holds: {', '.join(kinds)}.")


def _method(
    result: CompressResult, model: str | None, watch: _Watch, forced: bool
) -> Iterator[str]:
    """How it came about, in sentences."""
    if result.summary_method is None:
        tried = "nothing to gain" if forced else "it fits, so nothing was compressed"
        yield f"Method: none; {tried}. --target or --window ask for less, --force for it anyway."
    elif result.summary_method == "static" and model is None:
        yield "Method: static (no model was given; --model NAME has one write the summary)."
    elif result.summary_method == "static":
        yield f"Method: static, because {model} gave no usable summary."
    elif result.summary_method == "reused":
        yield "Method: reused from the store; nothing was written anew."
    else:
        cost = "" if result.usage.cost is None else f", ${result.usage.cost:.4f}"
        used = result.usage
        yield (
            f"Method: model ({model}: {number(used.prompt_tokens)} tokens read, "
            f"{number(used.completion_tokens)} written{cost})."
        )
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
    for failure in watch.failures:
        yield f"  {failure}"


def _what(part: Part, result: CompressResult) -> str:
    if part.segment is not None:
        return _summary_words(part.segment, result)
    masked = f"; {part.masked} of them masked or repaired" if part.masked else ""
    words = {
        "head": "system prompt and task, verbatim",
        "tail": "newest messages, verbatim",
        "all": "sent as it is",
    }
    return words.get(part.name, "stays between two summaries") + masked


def _summary_words(segment: Segment, result: CompressResult) -> str:
    if _new(segment, result) is None:
        return f"{segment.method}, found in the ledger"
    held = _held(segment, result)
    if held is None or not held.total:
        return segment.method
    return f"{segment.method}; the view holds {held.covered:,} of its {held.total:,} facts"


def _new(segment: Segment, result: CompressResult) -> Written | None:
    return next((w for w in result.written if w.message == segment.rendered), None)


def _held(segment: Segment, result: CompressResult) -> Coverage | None:
    """The facts of a new summary's messages that the view has, in it or elsewhere."""
    new = _new(segment, result)
    return None if new is None else result.coverage_in_view(new)


def _facts_json(part: Part, result: CompressResult) -> dict[str, Any] | None:
    held = None if part.segment is None else _held(part.segment, result)
    if held is None:
        return None
    kinds = {kind: {"held": a, "found": b} for kind, (a, b) in held.by_kind.items()}
    return {"held": held.covered, "found": held.total, "by_kind": kinds}


def _print_texts(screen: Screen, rows: list[Part]) -> None:
    for part in rows:
        if part.segment is not None:
            screen.panel(part.name, unframe(part.segment.rendered), "yellow")


def _as_json(
    file: str, result: CompressResult, rows: list[Part], watch: _Watch, *, with_messages: bool
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "file": file,
        "session_id": result.session_id,
        "parent_session_id": result.parent_session_id,
        "context_status": result.context_status,
        "summary_method": result.summary_method,
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "tokens_saved": result.tokens_saved,
        "masked_secrets": result.masked_secrets,
        "ungrounded": list(result.ungrounded),
        "cost_saved": result.cost_saved,
        "cost_saved_cached": result.cost_saved_cached,
        "usage": asdict(result.usage),
        "failures": watch.failures,
        "parts": [
            {
                "part": part.name,
                "messages": part.messages,
                "tokens_before": part.tokens_before,
                "tokens_after": part.tokens_after,
                "masked": part.masked,
                "what": _what(part, result),
                "summary": unframe(part.segment.rendered) if part.segment else None,
                "facts": _facts_json(part, result),
            }
            for part in rows
        ],
    }
    if with_messages:
        found["messages"] = result.messages
    return found


# -------------------------------------------------------------- masking


Above = Annotated[
    int | None,
    typer.Option("--above", metavar="TOKENS", help="Outputs up to this size stay (200)."),
]


Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="TOOL", help="Never mask this tool's outputs; may be repeated."),
]


MaskOut = Annotated[
    str | None,
    typer.Option("--out", metavar="FILE", help="Write the view there; - is standard output."),
]


@guarded
def mask(
    file: File,
    for_model: ForModel = None,
    keep_tokens: KeepTokens = None,
    above: Above = None,
    keep: Keep = None,
    out: MaskOut = None,
    conversation: Conversation = None,
    as_json: AsJson = False,
) -> None:
    """Replace old tool outputs by one line each: what was called, its outcome, its size.

    The newest tokens stay as they are. Asks no model; the file itself is never changed.
    """
    transcript = read(transcripts.read_one(file, conversation))
    config = config_of(
        model=for_model,
        protect_last_n_tokens=keep_tokens,
        mask_above_tokens=above,
        tool_policies=dict.fromkeys(keep or (), "keep"),
    )
    tokens = TokenCounter(config.model)
    counts = [tokens.message(message) for message in transcript.messages]
    end = _tail_start(transcript, counts, config.protect_last_n_tokens)
    calls = maskable(transcript.messages, counts, config)
    chosen = {index: found for index, found in calls.items() if index < end}
    view = [
        masked_message(chosen[index], message) if index in chosen else message
        for index, message in enumerate(transcript.messages)
    ]
    if out is not None:
        transcripts.write(out, view, source=file)
    screen = Screen(sys.stderr if out == "-" else None)
    rows = [
        [
            str(index),
            ", ".join(call.name for call in found.values()),
            number(counts[index]),
            number(tokens.message(view[index])),
        ]
        for index, found in chosen.items()
    ]
    before, after = tokens.messages(transcript.messages), tokens.messages(view)
    if as_json:
        screen.json(
            {
                "file": file,
                "masked": sorted(chosen),
                "tokens_before": before,
                "tokens_after": after,
                **({"messages": view} if out is None else {}),
            }
        )
        return
    says = [excerpt(text_of(view[index]), 60) for index in chosen]
    total = ["all", "", number(before), number(after), f"{len(chosen)} outputs masked"]
    screen.table(
        ["index#", "tool", "tokens before#", "tokens after#", "now"],
        [*([*row, said] for row, said in zip(rows, says, strict=True)), total],
        last_is_total=True,
    )


def _tail_start(transcript: Transcript, counts: Sequence[int], keep_tokens: int) -> int:
    """Where the newest steps begin that fit into `keep_tokens`; the newest one always stays."""
    start, room = len(counts), keep_tokens
    for step in reversed(transcript.steps):
        room -= sum(counts[index] for index in step)
        if room < 0 and start < len(counts):
            break
        start = step.start
    return start
