"""`eval`: how good a model is as summarizer, on the user's own sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..compressor.context_compressor import ContextCompressor
from ..compressor.result import CompressResult
from ..config import CompressorConfig
from ..errors import CompressorError
from ..facts import Domain
from ..ledger.memory import MemoryStore
from ..ledger.segments import Usage
from ..summaries.litellm_client import default_summarizer
from ..tokens.counter import TokenCounter
from .compressing import listener
from .options import BUDGET, MASKING, command, flag, option, without
from .terminal import Answer, Line, Piece, Table, Unusable, complain, money, number, unlogged
from .transcripts import read_all

if TYPE_CHECKING:
    from ..praisonai.evaluation import Probe

SMALLEST_TOKENS = 1_000
"""A conversation below it says nothing about a summarizer."""


@command
def eval_(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES...", help="Transcripts; all conversations in each."),
    ],
    config: Annotated[
        CompressorConfig, without(*BUDGET, *MASKING, "min_gain_ratio", "recall", "redact_archive")
    ],
    share: Annotated[float, option("--share", "RATIO", "Compress each to this share.")] = 0.4,
    limit: Annotated[int | None, option("--limit", "N", "At most so many conversations.")] = None,
    probes: Annotated[
        bool, flag("--probes", "Ask of each view what an agent needs that goes on.")
    ] = False,
) -> Answer:
    """Measure a model as summarizer on sessions of your own: what is lost, kept, and paid.

    Compresses every conversation in the files and counts the facts (files, commands, errors, words
    of the user, identifiers) that the model's text holds, alone and repaired, beside the static
    summary; claims that the originals do not bear out are listed. Without --auxiliary-model only
    the static one.

    With --probes each view is asked for the task, the rules, the files and how they ended, what
    failed and what comes next; where a model writes, it also answers from the view alone.

    $ praison-compressor eval talk.jsonl --limit 5
    """
    if not 0 < share < 1:
        raise Unusable(f"--share {share:g}: expected a number between 0 and 1")
    if limit is not None and limit < 1:
        raise Unusable(f"--limit {limit}: expected a whole number, 1 or more")
    several = ((Path(path).name, read_all(path)) for path in files)
    named = [
        (f"{name} {n}" if len(conversations) > 1 else name, messages)
        for name, conversations in several
        for n, messages in enumerate(conversations, 1)
    ]
    with unlogged():
        found = list(_measured(named[:limit], config, share, probes))
    if not found:
        raise Unusable(f"no conversation of {SMALLEST_TOKENS} tokens or more in {', '.join(files)}")
    return Answer({"auxiliary_model": config.auxiliary_model, "conversations": found}, _told(found))


@dataclass(frozen=True)
class Measure:
    """One conversation, compressed once by the model and once without."""

    name: str
    tokens_before: int
    tokens_after: int
    method: str | None
    facts: int
    held_by_model: int | None
    """Of the facts found, those that the model's own text holds; None where no model wrote."""
    held_repaired: int
    held_static: int
    unverified: tuple[str, ...] = ()
    """Claims of the model's text that the originals do not bear out, and why."""
    usage: Usage = field(default_factory=Usage)
    failure: str = ""
    probes: tuple[Probe, ...] = ()
    """What the view holds of what its transcript knows, by question."""
    answers: tuple[Probe, ...] = ()
    """The same of what the model answered from the view alone."""


def _measured(
    conversations: Sequence[tuple[str, list[Any]]],
    config: CompressorConfig,
    share: float,
    probes: bool,
) -> Iterator[Measure]:
    tokens = TokenCounter(config.model)
    for name, messages in conversations:
        try:
            size = tokens.messages(messages)
            if size >= SMALLEST_TOKENS:
                yield _measure(name, messages, config, int(size * share), probes)
        except CompressorError as error:
            complain(f"{name}: left out: {error}", kind="note: ")


def _measure(
    name: str, messages: list[Any], config: CompressorConfig, target: int, probes: bool
) -> Measure:
    alone = replace(config, auxiliary_model=None, fallback_models=())
    static, failures = _compressed(messages, alone, target)
    done = static
    if config.auxiliary_model:
        done, failures = _compressed(messages, config, target)
    by_model = [text.before for text in done.written if text.before is not None]
    found = Measure(
        name=name,
        tokens_before=done.tokens_before,
        tokens_after=done.tokens_after,
        method=done.summary_method,
        facts=sum(text.after.total for text in done.written if text.after is not None),
        held_by_model=sum(c.covered for c in by_model) if by_model else None,
        held_repaired=_held(done),
        held_static=_held(static),
        unverified=tuple(doubt.told() for doubt in done.unverified),
        usage=done.usage,
        failure=failures[-1] if failures else "",
    )
    return _probed(found, messages, done.messages, config) if probes else found


def _probed(
    found: Measure, messages: list[Any], view: list[Any], config: CompressorConfig
) -> Measure:
    from ..praisonai.evaluation import answers_from, probe  # the host: only when asked

    domain = Domain.of(config)
    found = replace(found, probes=tuple(probe(messages, view, domain=domain)))
    if not config.auxiliary_model:
        return found
    said = asyncio.run(
        answers_from(default_summarizer(config, config.auxiliary_model), view, config)
    )
    return replace(found, answers=tuple(probe(messages, view, said, domain=domain)))


def _compressed(
    messages: list[Any], config: CompressorConfig, target: int
) -> tuple[CompressResult, list[str]]:
    """The result, and why a model's text was not taken."""
    # A mask is not what is measured here: every tool's output is left to the summary.
    everything = replace(config, tool_policies={"*": "summarize"}, background=False)
    failures, hear = listener()
    compressor = ContextCompressor(everything, store=MemoryStore(), on_event=hear)
    return compressor.compress_sync(messages, target_tokens=target, force=True), failures


def _held(result: CompressResult) -> int:
    return sum(text.after.covered for text in result.written if text.after is not None)


# ---------------------------------------------------------------- what is told of it


def _told(found: Sequence[Measure]) -> Iterator[Piece]:
    names = ("conversation", "before#", "after#", "facts#", "model alone#", "repaired#", "static#")
    yield Table((*names, "by"), [*map(_row, found), _row(_together(found))])
    used = sum((measure.usage for measure in found), Usage())
    if used.prompt_tokens:
        price = "" if used.cost is None else f", {money(used.cost)}"
        read, written = number(used.prompt_tokens), number(used.completion_tokens)
        yield f"{read} tokens read by the model, {written} written{price}."
    for measure in found:
        for who, probes in (("the view", measure.probes), ("the model", measure.answers)):
            known = ", ".join(f"{p.kind} {p.score:.0%} of {len(p.expected)}" for p in probes)
            if known:
                yield f"{measure.name}: {who} knows: {known}"
        for told in measure.unverified:
            yield Line(f"{measure.name}: {told}", "yellow")
        if measure.failure:
            yield Line(f"{measure.name}: {measure.failure}", "yellow")


def _row(measure: Measure) -> tuple[str | int, ...]:
    held = (measure.held_by_model, measure.held_repaired, measure.held_static)
    return (
        *(measure.name, measure.tokens_before, measure.tokens_after, measure.facts),
        *("-" if n is None else f"{100 * n / max(1, measure.facts):.0f} %" for n in held),
        measure.method or "-",
    )


def _together(found: Sequence[Measure]) -> Measure:
    names = ("tokens_before", "tokens_after", "facts", "held_repaired", "held_static")
    totals = {name: sum(getattr(measure, name) for measure in found) for name in names}
    by_model = [measure.held_by_model for measure in found if measure.held_by_model is not None]
    held = sum(by_model) if len(by_model) == len(found) else None
    return Measure(f"all {len(found)}", method=None, held_by_model=held, **totals)
