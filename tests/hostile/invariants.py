"""List the promises about every view that a case breaks."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from praison_compressor import (
    BudgetTooSmall,
    CompressorConfig,
    ContextCompressor,
    InvalidMessages,
    TokenCounter,
)
from praison_compressor.messages import (
    Message,
    Transcript,
    read_transcript,
    text_of,
    to_plain,
    tool_calls_of,
)
from praison_compressor.messages.shapes import ORPHAN_OPENS, replace_surrogates
from praison_compressor.quotes import read_quotes
from praison_compressor.testing import Refusal, Rules, check_messages
from tests.helpers import native
from tests.helpers.transcripts import find_repairs
from tests.hostile.generating import Case

CONFIG = CompressorConfig(
    model="gpt-4o", context_window=8_000, protect_last_n_tokens=300, summary_max_retries=0
)
TOKENS = TokenCounter("gpt-4o")
OPENAI = Rules(
    # What a host adds to its own messages is passed on: the provider may know it.
    extra_message_keys=frozenset({"reasoning_content", "thinking_blocks", "id", "timestamp"})
)


def broken_promises(case: Case, *, pays: bool = False) -> list[str]:
    """Return every promise that does not hold for this case.

    Of what is read, repaired and said without a model, and of the best view; `pays`: of a
    compression too, which takes an event loop and writes.

    Raises:
        Exception: what none of our functions may raise.
    """
    before = repr(case.messages)
    try:
        transcript = read_transcript(case.messages)
    except InvalidMessages:
        transcript = None
    found = [*_view_promises(case, transcript, pays)]
    if transcript is not None:
        found += _read_promises(case, transcript)
    elif case.kind != "hostile":
        found.append("it was not read")
    return found if repr(case.messages) == before else [*found, "the caller's messages changed"]


def _read_promises(case: Case, transcript: Transcript) -> Iterator[str]:
    sent = transcript.messages
    yield from _validity(case, sent)
    length = len(case.messages) if isinstance(case.messages, (list, tuple)) else 0
    if sorted(o for o in transcript.origins if o is not None) != [*range(length)]:
        yield "a message was lost or doubled by reading"
    if read_transcript(sent).messages != sent:
        yield "what was read reads otherwise"
    budget = min(case.target, 600)
    quoted = read_quotes(sent).render(budget, TOKENS.text)
    if TOKENS.text(quoted) > budget:
        yield f"quotes of {TOKENS.text(quoted)} tokens where {budget} were asked for"
    if quoted.lower().count("\n## the user said") > 1:
        yield "a second section of the user's words"


# ---------------------------------------------------------------- the view


class _Mistakes(logging.Handler):
    """`fallback_view` raises nothing; what it caught is logged, and raised here."""

    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage())


def _best_messages(ours: ContextCompressor, case: Case) -> Any:
    logger = logging.getLogger("praison_compressor.compressor.context_compressor")
    logger.addHandler(mistakes := _Mistakes(logging.ERROR))
    try:
        return ours.fallback_view(case.messages, target_tokens=case.target).messages
    finally:
        logger.removeHandler(mistakes)


def _view_promises(case: Case, transcript: Transcript | None, pays: bool) -> Iterator[str]:
    ours = ContextCompressor(CONFIG, tokens=TOKENS)
    best = _best_messages(ours, case)
    if transcript is None:
        return  # unreadable: it came back as it is
    yield from _validity(case, best)
    if not any("characters left out: too long" in text_of(message) for message in best):
        yield from _intact(transcript, best)
    if best and _kinds(best[-1]) != _kinds(transcript.messages[-1]):
        yield "the best view does not end as the transcript does"
    if _best_messages(ours, case) != best:
        yield "the best view of the same messages is another one"
    if pays:
        yield from _paid_promises(case, transcript, ours, best)


def _paid_promises(
    case: Case, transcript: Transcript, ours: ContextCompressor, best: list[Message]
) -> Iterator[str]:
    try:
        result = ours.compress_sync(case.messages, target_tokens=case.target)
    except BudgetTooSmall:
        return
    view = result.messages
    if result.tokens_after > case.target or TOKENS.messages(view) != result.tokens_after:
        yield f"{result.tokens_after} tokens where at most {case.target} were asked for"
    if TOKENS.messages(best) > case.target:
        yield "the best view is over a budget that can be kept"
    yield from _validity(case, view)
    yield from _intact(transcript, view)
    # What the view shows as it is has no half characters any more; the session's own record does.
    whole = [replace_surrogates(message) for message in ours.verbatim(view)]
    if case.kind == "valid" and whole != [replace_surrogates(to_plain(m)) for m in case.messages]:
        yield "verbatim does not give the transcript back"
    other = ContextCompressor(CONFIG, tokens=TOKENS)
    if other.compress_sync(case.messages, target_tokens=case.target).messages != view:
        yield "a second compressor made another view"
    if ours.compress_sync(view, target_tokens=case.target).messages != view:
        yield "compressing the view made another view"


def _intact(transcript: Transcript, view: Sequence[Message]) -> Iterator[str]:
    sent = transcript.messages
    said = [m for m in sent if m["role"] == "user"]
    users = [m for m in said if not text_of(m).startswith(ORPHAN_OPENS)]
    if users and users[-1] not in view:
        yield "the newest user message is not in the view"
    if transcript.steps:
        pending = [sent[i] for i in transcript.steps[-1]]
        if list(view[-len(pending) :]) != pending:
            yield "the newest step is not at the end"
    if list(view[: transcript.leading]) != list(sent[: transcript.leading]):
        yield "leading system messages changed"


def _kinds(message: Message) -> tuple[Any, ...]:
    return message["role"], message.get("tool_call_id"), len(tool_calls_of(message))


# ---------------------------------------------------------------- providers


def _validity(case: Case, view: Sequence[Message]) -> Iterator[str]:
    """Yield what the strict providers refuse, but for the caller's own parts."""
    yield from (f"not valid: {problem}" for problem in find_repairs(view))
    if case.kind != "hostile":  # keys and part types that no provider knows are the caller's
        yield from refusals(view)


def refusals(view: Sequence[Message]) -> list[str]:
    """Return the refusals of OpenAI's chat completions and Anthropic's API."""
    user = {"role": "user", "content": "."}  # adapters put one in front where none is
    found = [native.refusal_of([user, *native.to_native(list(view)), user])]
    try:
        check_messages(list(view), OPENAI)
    except Refusal as refusal:
        found.append(refusal.message)
    return [why for why in found if why]
