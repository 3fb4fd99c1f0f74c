"""What must hold of every view, told as the list of promises that were broken."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from praison_compressor import (
    BudgetTooSmall,
    CompressorConfig,
    ContextCompressor,
    InvalidMessages,
    TokenCounter,
)
from praison_compressor.facts import coverage, extract
from praison_compressor.messages import (
    ORPHAN_OPENS,
    Transcript,
    check,
    content_digest,
    read,
    text_of,
    to_plain,
    tool_calls_of,
)
from praison_compressor.summaries.static import static_summary
from praison_compressor.testing import Refusal, Rules, check_messages
from praison_compressor.view.budget import Budget
from praison_compressor.view.layout import arrange
from praison_compressor.view.plan import plan
from tests.helpers.provider import Anthropic
from tests.hostile.generating import Case

Message = dict[str, Any]

CONFIG = CompressorConfig(
    model="gpt-4o", context_window=8_000, protect_last_n_tokens=300, summary_max_retries=0
)
OPENAI = Rules(
    # What a host adds to its own messages is passed on: the provider at hand may know it.
    extra_message_keys=frozenset({"reasoning_content", "thinking_blocks", "id", "timestamp"})
)


class Workshop:
    """Compressors that share what is costly to make; one session a case."""

    def __init__(self, summarizer: Any = None) -> None:
        self._tokens = TokenCounter("gpt-4o")
        self._summarizer = summarizer
        self._mistakes = _Mistakes()
        logger = logging.getLogger("praison_compressor.compressor.context_compressor")
        logger.addHandler(self._mistakes)

    def mistake(self) -> str | None:
        """What `best_view` logged as an error of ours since the last question, if anything."""
        found, self._mistakes.found = self._mistakes.found, None
        return found

    def compressor(self) -> ContextCompressor:
        """A compressor with a ledger of its own."""
        return ContextCompressor(CONFIG, summarizer=self._summarizer, tokens=self._tokens)


class _Mistakes(logging.Handler):
    """`best_view` raises nothing; what it caught is told in the log, and read here."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self.found = repr(record.exc_info[1] if record.exc_info else record.getMessage())


def broken_promises(case: Case, workshop: Workshop, *, twice: bool = True) -> list[str]:
    """Every promise that does not hold for this case; empty when all do."""
    return _and_unchanged(case, _promises(case, workshop, twice))


def quickly_broken(case: Case, workshop: Workshop, *, twice: bool = True) -> list[str]:
    """The promises of `best_view` alone, which takes no event loop and writes nothing."""
    return _and_unchanged(case, _quick_promises(case, workshop, twice))


def pure_broken(case: Case) -> list[str]:
    """The promises of the pure half: reading, repair and the plan, with tokens by characters."""
    return _and_unchanged(case, _pure_promises(case))


def _pure_promises(case: Case) -> Iterator[str]:
    transcript, trouble = _attempt(lambda: read(case.messages))
    if trouble is not None:
        if not isinstance(trouble, InvalidMessages) or case.kind != "hostile":
            yield f"read raised {trouble!r}"
        return
    sent = transcript.messages
    yield from (f"read is not valid: {problem}" for problem in check(sent))
    yield from _provider_promises(case, sent)
    length = len(case.messages) if isinstance(case.messages, (list, tuple)) else 0
    if sorted(o for o in transcript.origins if o is not None) != [*range(length)]:
        yield "a message was lost or doubled by reading"
    if read(sent).messages != sent:
        yield "what was read reads otherwise"
    yield from _plan_promises(case, transcript)
    yield from facts_broken(sent, min(case.target, 600))


def facts_broken(messages: Sequence[Message], budget: int) -> list[str]:
    """The promises of what is read out of messages and printed without a model."""
    found, trouble = _attempt(lambda: [*_facts_promises(messages, budget)])
    return [f"facts raised {trouble!r}"] if trouble is not None else found


def _facts_promises(messages: Sequence[Message], budget: int) -> Iterator[str]:
    facts = extract(messages)
    text = static_summary(messages, budget_tokens=budget, count=_quarter)
    if _quarter(text) > budget:
        yield f"a static summary of {_quarter(text)} tokens where {budget} were asked for"
    headings = [line for line in text.splitlines() if line.lower().startswith("## the user said")]
    if len(headings) > 1:
        yield "a second section of the user's words"
    covered, empty = coverage(facts, text), coverage(facts, "")
    if not empty.covered <= covered.covered <= covered.total:
        yield f"coverage of {covered.covered} of {covered.total}, of nothing {empty.covered}"


def _quarter(text: str) -> int:
    return (len(text) + 3) // 4


def _plan_promises(case: Case, transcript: Transcript) -> Iterator[str]:
    sent = transcript.messages
    tokens = [4 + len(str(message.get("content"))) // 4 for message in sent]
    layout = arrange(transcript, [str(n) for n in range(len(sent))], tokens, [], case.target // 10)
    found, trouble = _attempt(lambda: plan(layout, Budget.exactly(CONFIG, case.target)))
    if trouble is not None:
        if not isinstance(trouble, BudgetTooSmall):
            yield f"plan raised {trouble!r}"
        return
    if found is None:
        if sum(tokens) > case.target:
            yield "no plan although the view is over the target"
        return
    inside = [index for job in found.jobs for index in range(job.start, job.end)]
    borders = {step.start for step in transcript.steps} | {len(sent)}
    if len(set(inside)) < len(inside) or not all(layout.allowed[index] for index in inside):
        yield "a message stands in two jobs, or must stay"
    if any(job.start not in borders or job.end not in borders for job in found.jobs):
        yield "a job splits a step"
    if found.expected > case.target or any(job.room < 1 for job in found.jobs):
        yield f"a plan for {found.expected} tokens where {case.target} were asked for"


def _and_unchanged(case: Case, promises: Iterator[str]) -> list[str]:
    before = repr(case.messages)
    found = [*promises]
    if repr(case.messages) != before:
        found.append("the caller's messages were changed")
    return found


def _promises(case: Case, workshop: Workshop, twice: bool) -> Iterator[str]:
    ours = workshop.compressor()
    workshop.mistake()
    best, trouble = _attempt(lambda: ours.best_view(case.messages, target_tokens=case.target))
    mistake = workshop.mistake()
    if trouble is not None or mistake is not None:
        yield f"best_view raised {trouble!r}, caught {mistake}"
        return
    outcome, trouble = _attempt(
        lambda: ours.compress_sync(case.messages, target_tokens=case.target)
    )
    if trouble is None:
        yield from _view_promises(case, ours, outcome.messages, outcome.tokens_after)
        yield from _best_promises(case, ours, best, fits=True)
        if twice:
            yield from _same_again(case, workshop, ours, outcome.messages)
    elif isinstance(trouble, BudgetTooSmall):
        yield from _best_promises(case, ours, best, fits=False)
    elif not isinstance(trouble, InvalidMessages):
        yield f"compress raised {trouble!r}"
    elif case.kind != "hostile":
        yield f"{case.kind} messages were refused: {trouble}"


def _quick_promises(case: Case, workshop: Workshop, twice: bool) -> Iterator[str]:
    ours = workshop.compressor()
    workshop.mistake()
    best, trouble = _attempt(lambda: ours.best_view(case.messages, target_tokens=case.target))
    mistake = workshop.mistake()
    if trouble is not None or mistake is not None:
        yield f"best_view raised {trouble!r}, caught {mistake}"
        return
    transcript, trouble = _attempt(lambda: read(case.messages))
    if trouble is not None:
        return  # unreadable: it came back as it is
    yield from _best_promises(case, ours, best, fits=False)
    yield from _provider_promises(case, best)
    if not any("characters left out: no window" in text_of(message) for message in best):
        yield from _intact(transcript, best)
    if twice and ours.best_view(case.messages, target_tokens=case.target) != best:
        yield "the best view of the same messages is another one"


def _attempt(make: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return make(), None
    except Exception as error:
        return None, error


# ---------------------------------------------------------------- the view


def _view_promises(
    case: Case, ours: ContextCompressor, view: Sequence[Message], tokens: int
) -> Iterator[str]:
    transcript = read(case.messages)
    if tokens > case.target or ours.tokens.messages(view) != tokens:
        yield f"{tokens} tokens where at most {case.target} were asked for"
    yield from (f"not valid: {problem}" for problem in check(view))
    yield from _provider_promises(case, view)
    yield from _intact(transcript, view)
    yield from _archive_promises(case, ours, view)


def _intact(transcript: Transcript, view: Sequence[Message]) -> Iterator[str]:
    sent = transcript.messages
    users = [m for m in sent if _is_users(m)]
    if users and users[-1] not in view:
        yield "the newest user message is not in the view"
    if transcript.steps:
        pending = [sent[i] for i in transcript.steps[-1]]
        if list(view[-len(pending) :]) != pending:
            yield "the newest step is not at the end"
    if list(view[: transcript.leading]) != list(sent[: transcript.leading]):
        yield "leading system messages changed"


def _is_users(message: Message) -> bool:
    return message["role"] == "user" and not text_of(message).startswith(ORPHAN_OPENS)


def _archive_promises(
    case: Case, ours: ContextCompressor, view: Sequence[Message]
) -> Iterator[str]:
    """Each message is archived or in the view: `verbatim` gives the transcript back."""
    given = [to_plain(message) for message in case.messages]
    verbatim = ours.verbatim(view)
    if case.kind == "valid" and verbatim != given:
        yield "verbatim does not give the transcript back"
    session = ours.store.open(CONFIG.namespace, ours.session_id)
    archived = [
        content_digest(message)
        for entry in session.entries
        for message in ours.store.originals(session, entry) or ()
    ]
    mine = [content_digest(message) for message in given]
    lost = [d for d in archived if d not in mine]
    if lost:
        yield f"{len(lost)} archived messages are not the caller's"
    in_view = {content_digest(message) for message in view}
    transcript = read(case.messages)
    repaired = {
        mine[origin]: content_digest(message)
        for origin, message in zip(transcript.origins, transcript.messages, strict=True)
        if origin is not None
    }
    gone = [d for d in mine if d not in archived and d not in in_view]
    if [d for d in gone if repaired.get(d) not in in_view]:
        yield "a message is neither in the view nor in the archive"


def _same_again(
    case: Case, workshop: Workshop, ours: ContextCompressor, view: list[Message]
) -> Iterator[str]:
    other, trouble = _attempt(
        lambda: workshop.compressor().compress_sync(case.messages, target_tokens=case.target)
    )
    if trouble is not None or other.messages != view:
        yield f"a second compressor made another view ({trouble!r})"
    again, trouble = _attempt(lambda: ours.compress_sync(view, target_tokens=case.target))
    if trouble is not None or again.messages != view:
        yield f"compressing the view gave another one ({trouble!r})"


def _best_promises(
    case: Case, ours: ContextCompressor, best: Sequence[Message], *, fits: bool
) -> Iterator[str]:
    yield from (f"best view not valid: {problem}" for problem in check(best))
    if fits and ours.tokens.messages(best) > case.target:
        yield "the best view is over a budget that can be kept"
    if best and _kinds(best[-1]) != _kinds(read(case.messages).messages[-1]):
        yield "the best view does not end as the transcript does"


def _kinds(message: Message) -> tuple[Any, ...]:
    return message["role"], message.get("tool_call_id"), len(tool_calls_of(message))


# ---------------------------------------------------------------- providers


def _provider_promises(case: Case, view: Sequence[Message]) -> Iterator[str]:
    """Nothing that the two strict providers refuse, unless they refuse the caller's own parts."""
    if case.kind == "hostile":
        return  # keys and part types that no provider knows are the caller's to answer for
    refused = refusal_of_openai(view)
    if refused:
        yield f"OpenAI: {refused}"
    refused = refusal_of_anthropic(view)
    if refused:
        yield f"Anthropic: {refused}"


def refusal_of_openai(view: Sequence[Message]) -> str | None:
    """What OpenAI's chat completions would say to these messages, if it refused them."""
    try:
        check_messages(list(view), OPENAI)
    except Refusal as refusal:
        return refusal.message
    return None


def refusal_of_anthropic(view: Sequence[Message]) -> str | None:
    """What Anthropic's messages API would say to them, carried over as adapters do."""
    try:
        Anthropic().check(to_anthropic(view), Rules())
    except Refusal as refusal:
        return refusal.message
    return None


def to_anthropic(view: Sequence[Message]) -> Message:
    """The view as an Anthropic request: system apart, results in user messages, roles merged.

    As litellm and the vendors' own guides do it. A conversation that opens with the assistant
    gets the user message that adapters put in front.
    """
    system = "\n".join(text_of(m) for m in view if m["role"] in ("system", "developer"))
    spoken = [m for m in view if m["role"] not in ("system", "developer")]
    merged: list[Message] = []
    for message in spoken:
        role = "assistant" if message["role"] == "assistant" else "user"
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] += _blocks(message)
        else:
            merged.append({"role": role, "content": _blocks(message)})
    if not merged or merged[0]["role"] != "user":
        merged.insert(0, {"role": "user", "content": [{"type": "text", "text": "."}]})
    last = merged[-1]["content"][-1]
    if merged[-1]["role"] == "assistant" and last["type"] == "text":
        last["text"] = last["text"].rstrip()  # litellm does: the API refuses trailing space there
    body = {"model": "claude", "max_tokens": 1_000, "messages": merged}
    return {**body, "system": system} if system.strip() else body


def _blocks(message: Message) -> list[Message]:
    if message["role"] in ("tool", "function"):
        key = str(message.get("tool_call_id") or message.get("name"))
        return [{"type": "tool_result", "tool_use_id": key, "content": text_of(message)}]
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    blocks = [_block(part) for part in parts if part.get("type") != "text" or part["text"].strip()]
    return blocks + [
        {"type": "tool_use", "id": c.id or c.name, "name": c.name, "input": json.loads(c.arguments)}
        for c in tool_calls_of(message)
    ]


def _block(part: Message) -> Message:
    if part.get("type") == "text":
        return {"type": "text", "text": part["text"]}
    return {"type": "image", "source": {"type": "url", "url": part["image_url"]["url"]}}
