"""What must hold of every view, told as the list of promises that were broken."""

from __future__ import annotations

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
from praison_compressor.messages import (
    ORPHAN_OPENS,
    Transcript,
    check,
    read,
    text_of,
    to_plain,
    tool_calls_of,
)
from praison_compressor.summaries.static import static_summary
from praison_compressor.testing import Refusal, Rules, check_messages
from tests.helpers import native
from tests.hostile.generating import Case

Message = dict[str, Any]

CONFIG = CompressorConfig(
    model="gpt-4o", context_window=8_000, protect_last_n_tokens=300, summary_max_retries=0
)
TOKENS = TokenCounter("gpt-4o")
OPENAI = Rules(
    # What a host adds to its own messages is passed on: the provider at hand may know it.
    extra_message_keys=frozenset({"reasoning_content", "thinking_blocks", "id", "timestamp"})
)


def broken_promises(case: Case, *, pays: bool = False) -> list[str]:
    """Every promise that does not hold for this case; empty when all do.

    Of what is read, repaired and said without a model, and of the best view; `pays`: of a
    compression too, which takes an event loop and writes.
    """
    before = repr(case.messages)
    found = [*_read_promises(case), *_view_promises(case, pays)]
    return found if repr(case.messages) == before else [*found, "the caller's messages changed"]


def _attempt(make: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return make(), None
    except Exception as error:
        return None, error


# ---------------------------------------------------------------- the pure half


def _read_promises(case: Case) -> Iterator[str]:
    transcript, trouble = _attempt(lambda: read(case.messages))
    if trouble is not None:
        if not isinstance(trouble, InvalidMessages) or case.kind != "hostile":
            yield f"read raised {trouble!r}"
        return
    sent = transcript.messages
    yield from _validity(case, sent)
    length = len(case.messages) if isinstance(case.messages, (list, tuple)) else 0
    if sorted(o for o in transcript.origins if o is not None) != [*range(length)]:
        yield "a message was lost or doubled by reading"
    if read(sent).messages != sent:
        yield "what was read reads otherwise"
    yield from _static_promises(sent, min(case.target, 600))


def _static_promises(messages: Sequence[Message], budget: int) -> Iterator[str]:
    text, trouble = _attempt(
        lambda: static_summary(messages, budget_tokens=budget, count=TOKENS.text)
    )
    if trouble is not None:
        yield f"the static summary raised {trouble!r}"
    elif TOKENS.text(text) > budget:
        yield f"a static summary of {TOKENS.text(text)} tokens where {budget} were asked for"
    elif text.lower().count("\n## the user said") > 1:
        yield "a second section of the user's words"


# ---------------------------------------------------------------- the view


class _Mistakes(logging.Handler):
    """`best_view` raises nothing; what it caught is told in the log, and read here."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(repr(record.exc_info[1] if record.exc_info else record.getMessage()))


def _best_view(ours: ContextCompressor, case: Case) -> tuple[Any, list[str]]:
    """The best view, and what was caught or raised while it was made."""
    mistakes = _Mistakes()
    logger = logging.getLogger("praison_compressor.compressor.context_compressor")
    logger.addHandler(mistakes)
    best, trouble = _attempt(lambda: ours.best_view(case.messages, target_tokens=case.target))
    logger.removeHandler(mistakes)
    return best, [*mistakes.found, *([repr(trouble)] if trouble else [])]


def _view_promises(case: Case, pays: bool) -> Iterator[str]:
    ours = ContextCompressor(CONFIG, tokens=TOKENS)
    best, mistakes = _best_view(ours, case)
    if mistakes:
        yield f"best_view: {mistakes}"
        return
    transcript, trouble = _attempt(lambda: read(case.messages))
    if trouble is not None:
        return  # unreadable: it came back as it is
    yield from _validity(case, best)
    if not any("characters left out: no window" in text_of(message) for message in best):
        yield from _intact(transcript, best)
    if best and _kinds(best[-1]) != _kinds(transcript.messages[-1]):
        yield "the best view does not end as the transcript does"
    if _best_view(ours, case)[0] != best:
        yield "the best view of the same messages is another one"
    if pays:
        yield from _paid_promises(case, ours, best)


def _paid_promises(case: Case, ours: ContextCompressor, best: list[Message]) -> Iterator[str]:
    result, trouble = _attempt(lambda: ours.compress_sync(case.messages, target_tokens=case.target))
    if trouble is not None:
        if not isinstance(trouble, BudgetTooSmall):
            yield f"compress raised {trouble!r}"
        return
    view = result.messages
    if result.tokens_after > case.target or TOKENS.messages(view) != result.tokens_after:
        yield f"{result.tokens_after} tokens where at most {case.target} were asked for"
    if TOKENS.messages(best) > case.target:
        yield "the best view is over a budget that can be kept"
    yield from _validity(case, view)
    yield from _intact(read(case.messages), view)
    if case.kind == "valid" and ours.verbatim(view) != [to_plain(m) for m in case.messages]:
        yield "verbatim does not give the transcript back"
    other = ContextCompressor(CONFIG, tokens=TOKENS)
    for name, compressor, messages in (
        ("a second compressor made", other, case.messages),
        ("compressing the view made", ours, view),
    ):
        again, trouble = _attempt(
            lambda: compressor.compress_sync(messages, target_tokens=case.target)  # noqa: B023
        )
        if trouble is not None or again.messages != view:
            yield f"{name} another view ({trouble!r})"


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


def _kinds(message: Message) -> tuple[Any, ...]:
    return message["role"], message.get("tool_call_id"), len(tool_calls_of(message))


# ---------------------------------------------------------------- providers


def _validity(case: Case, view: Sequence[Message]) -> Iterator[str]:
    """Nothing that the two strict providers refuse, unless they refuse the caller's own parts."""
    yield from (f"not valid: {problem}" for problem in check(view))
    if case.kind != "hostile":  # keys and part types that no provider knows are the caller's
        yield from refusals(view)


def refusals(view: Sequence[Message]) -> list[str]:
    """What OpenAI's chat completions and Anthropic's API would say to these messages."""
    user = {"role": "user", "content": "."}  # adapters put one in front where none is
    found = [native.refusal_of([user, *native.to_native(list(view)), user])]
    try:
        check_messages(list(view), OPENAI)
    except Refusal as refusal:
        found.append(refusal.message)
    return [why for why in found if why]
