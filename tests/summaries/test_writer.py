"""The writer covers every message once, counts every token, and leaves no task."""

import asyncio
import functools
from dataclasses import replace
from typing import Any

import pytest

from praison_compressor import (
    MemoryStore,
    SummarizerUnavailable,
    SummaryReply,
    Usage,
)
from praison_compressor.ledger.segments import Session
from praison_compressor.messages import Message, text_of
from tests.helpers import compressing
from tests.helpers.transcripts import coding_turns, rambling, step
from tests.summaries.writing import TOKENS, brief, write, writer

ANSWER = "## Done\nThe modules so far are in order."
ONE = Usage(prompt_tokens=900, completion_tokens=80, cache_read_tokens=100, cost=0.5)


def quoting(messages: list[Message]) -> str:
    """Return a little of what is to be summarized."""
    return text_of(messages[-1]).partition(">\n")[2][300:420]


class Paid:
    """A summarizer that answers from a list, the last one for ever, and charges for each."""

    def __init__(self, *answers: Any, window: int | None = None) -> None:
        self.answers = list(answers) or [ANSWER]
        self.window = window
        self.requests: list[list[dict]] = []
        self.models: list[str | None] = []

    async def summarize(
        self, messages: list[Message], *, max_tokens: Any, model: Any, timeout_seconds: Any
    ) -> SummaryReply:
        self.requests.append(messages)
        self.models.append(model)
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(messages)
        return SummaryReply(answer, ONE, model, "stop")


compressor = functools.partial(compressing.compressor, summary_max_retries=0)


def shown(request: list[Message]) -> str:
    return text_of(request[-1]).partition("<transcript>")[2]


# ---------------------------------------------------------------- in parts


@pytest.mark.parametrize("window", [2_000, 6_000, None])
def test_every_message_is_in_exactly_one_part(window):
    """Each message is shown in one request, within the window, a call with its results."""
    messages = coding_turns(30)[1:]
    model = Paid(window=window)
    written = write(model, brief(messages))
    sizes = map(TOKENS.messages, model.requests)
    assert max(sizes) + 400 <= (window or 30_000)
    ends = [text_of(m).rsplit(" ", 1)[1] for m in messages if m["role"] == "tool"]
    asked = [shown(request) for request in model.requests]
    assert written.method == "model"
    assert [text.count("[calls ") for text in asked] == [text.count("[result of") for text in asked]
    assert [end for end in ends if sum(f"{end}\n" in text for text in asked) != 1] == []


def test_the_stretches_of_one_compression_share_its_calls():
    """Runs between kept messages share the 16 calls of one compression."""
    messages = coding_turns(240)
    for number in range(12, len(messages) - 3, 192):
        for call in messages[number].get("tool_calls") or ():
            call["function"]["name"] = "alpha"
    model = Paid(window=3_000)
    ours = compressor(
        model, context_window=20_000, tool_policies={"alpha": "keep", "*": "summarize"}
    )
    result = ours.compress_sync(messages)
    assert len(result.written) > 4
    assert 4 < len(model.requests) <= 16
    assert result.usage.prompt_tokens == 900 * len(model.requests)


@pytest.mark.parametrize(("kind", "seen"), [("earlier", 0), ("folded", 1)])
def test_earlier_summaries_never_crowd_out_the_transcript(kind, seen):
    """Above the room only summaries that are folded are read."""
    long = tuple(" ".join(f"earlier-{n}" for n in range(at, at + 70)) for at in range(0, 700, 70))
    messages = coding_turns(10)[1:]
    model = Paid(quoting, window=2_000)
    write(model, brief(messages, **{kind: long}))
    asked = "\n".join(text_of(request[-1]) for request in model.requests)
    assert max(TOKENS.messages(request) + 400 for request in model.requests) <= 2_000
    assert [asked.count(f"earlier-{n} ") for n in (10, 350, 698)] == [seen, seen, seen]


@pytest.mark.parametrize("ratio", [0.3, 2.0])
def test_parts_are_measured_for_the_model_that_reads_them(ratio):
    """The ratio learned for the agent's provider does not apply to another model."""
    model, messages = Paid(window=8_192), coding_turns(60)
    ours = compressor(model, model="acme/unknown", auxiliary_model="gpt-4o", context_window=60_000)
    ours.tokens.calibrate(messages, int(ours.tokens.messages(messages) * ratio))
    ours.compress_sync(messages, force=True)
    sizes = sorted(map(TOKENS.messages, model.requests), reverse=True)
    assert sizes[0] + 1_500 <= 8_192
    assert sizes[1] + 1_500 > 0.7 * 8_192


# ---------------------------------------------------------------- what it cost


def test_rejected_answers_are_billed():
    """The result has the cost of the rejected answers."""
    model = Paid("", "", ANSWER)
    ours = compressor(model, auxiliary_model="first", fallback_models=("second",))
    result = ours.compress_sync(coding_turns(20))
    assert model.models == ["first", "first", "second"]
    assert result.usage == ONE + ONE + ONE
    assert result.usage.cost == 1.5


def test_an_answer_that_is_too_long_is_not_asked_for_again():
    """An answer that is too long is billed without another request."""
    endless = Paid(rambling(5_000))
    result = compressor(endless).compress_sync(coding_turns(20))
    assert (result.summary_method, len(endless.requests)) == ("static", 1)
    assert result.usage == ONE


def test_every_answer_is_on_the_bill_where_all_models_fail():
    """The static text has the cost of the parts and rejected answers of every model."""
    model = Paid(ANSWER, "", window=4_000)
    ours = compressor(
        model, auxiliary_model="first", fallback_models=("second",), context_window=10_000
    )
    result = ours.compress_sync(coding_turns(30))
    assert model.models == ["first"] * 3 + ["second"] * 2
    assert (result.summary_method, result.usage) == ("static", sum([ONE] * 5, Usage()))


def test_a_model_that_was_left_too_few_calls_does_not_rest():
    """A model without calls left for its parts is asked for the next summary."""
    gone = SummarizerUnavailable("no such key", kind="auth")
    model = Paid(*[ANSWER] * 11, gone, ANSWER, window=2_500)
    made = writer(model, auxiliary_model="first", fallback_models=("second",))
    given = brief(coding_turns(30)[1:])
    assert asyncio.run(made.write(given, model=None, session_id="s")).method == "static"
    assert model.models == ["first"] * 12
    assert asyncio.run(made.write(given, model=None, session_id="s")).model == "second"


class Named(Paid):
    """The first model's answers have its name, the others' have none."""

    async def summarize(self, messages: list[Message], *, model: Any, **given: Any) -> Any:
        reply = await super().summarize(messages, model=model, **given)
        return replace(reply, model="first" if model == "first" else None)


def test_a_summary_never_names_a_model_whose_answer_was_refused():
    """After a refused answer of one model the next model's summary has that model's name only."""
    ours = compressor(Named("", "", ANSWER), auxiliary_model="first", fallback_models=("second",))
    (text,) = ours.compress_sync(coding_turns(20)).written
    assert (text.method, text.model) == ("model", None)


class Overtaken(MemoryStore):
    """Another worker, on the same ledger, is quicker: once. No lease holds it off."""

    def __init__(self, first: Any) -> None:
        super().__init__()
        self.first = first

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        return True

    def commit(self, session: Session, segments: Any, skeleton: Any = None) -> Session:
        first, self.first = self.first, None
        if first is not None:
            first(self)
        return super().commit(session, segments, skeleton)


def test_a_text_that_lost_a_race_is_on_the_bill():
    """A text is billed though another worker's text is used."""
    messages, other = coding_turns(20), []

    def same(store):
        other.append(compressor(Paid(), store=store).compress_sync(messages, session_id="s"))

    result = compressor(Paid(), store=Overtaken(same)).compress_sync(messages, session_id="s")
    assert (result.summary_method, result.messages) == ("reused", other[0].messages)
    assert result.usage == ONE


def test_a_text_that_is_written_again_is_on_the_bill_twice():
    """A text that another worker's segment made useless is billed beside its successor."""
    messages, events = coding_turns(20), []

    def shorter(store):
        compressor(None, store=store).compress_sync(messages[:60], session_id="s", force=True)

    ours = compressor(Paid(), events.append, store=Overtaken(shorter))
    result = ours.compress_sync(messages, session_id="s")
    assert [event.name for event in events].count("model_called") == 2
    assert result.usage == result.segments[-1].usage == ONE + ONE
    assert next(e.data["cost"] for e in events if e.name == "committed") == 1.0


@pytest.fixture
def in_parts():
    """Return a compressor, its model and events, and the result of a summary in parts."""
    events = []
    model = Paid(window=3_000)
    ours = compressor(model, on_event=events.append, context_window=20_000)
    return ours, model, events, ours.compress_sync(coding_turns(60), session_id="s")


def test_the_bill_is_in_the_result_the_event_and_the_ledger(in_parts):
    """Result, event and ledger have the bill of all parts."""
    ours, model, events, result = in_parts
    calls = len(model.requests)
    committed = next(event.data for event in events if event.name == "committed")
    assert calls > 3
    assert result.usage == sum([ONE] * calls, Usage())
    assert (committed["prompt_tokens"], committed["cost"]) == (900 * calls, 0.5 * calls)
    assert ours.store.open("default", "s").entries[-1].segment.usage == result.usage
    assert 1 < [event.name for event in events].count("part_summarized") <= calls


def test_the_money_saved_is_in_the_result_and_the_event(in_parts):
    """Each result and the event have the money saved, at the model's price."""
    ours, _, events, result = in_parts
    assert result.tokens_saved > 1_000
    assert result.cost_saved == result.tokens_saved * 2.5e-6  # gpt-4o: $2.50 for a million
    assert result.cost_saved_cached == result.cost_saved / 2
    committed = next(event.data for event in events if event.name == "committed")
    assert committed["cost_saved"] == result.cost_saved
    again = ours.compress_sync(coding_turns(60), session_id="s")
    assert (again.summary_method, again.cost_saved) == ("reused", result.cost_saved)


@pytest.mark.parametrize(("kind", "calls"), [("network", 3), ("auth", 1), ("timeout", 1)])
def test_a_failure_that_may_pass_is_tried_again(kind, calls):
    """Only a failure that may pass is tried again."""
    gone = SummarizerUnavailable("gone", kind=kind, retry_after=0.0)
    model = Paid(gone, gone, ANSWER)
    compressor(model, summary_max_retries=2).compress_sync(coding_turns(20))
    assert len(model.requests) == calls


IDS = [f"k-{n}" for n in range(417, 517)]  # three tokens each
STOCK = step("c", " ".join(IDS), "list_stock")


@pytest.mark.parametrize(
    ("room", "by_model"), [(90, False), (110, True), (135, True), (160, True), (185, True)]
)
def test_no_more_words_are_asked_than_the_room_takes_of_ids(room, by_model):
    """A summary of ids is asked for as few words as its room takes."""

    def dense(request):
        asked = int(text_of(request[-1]).rpartition("at most ")[2].split()[0])
        return " ".join(IDS[::2][:asked])

    given = brief(STOCK, room=room, quote_tokens=0, prose_tokens=72)
    assert (write(Paid(dense), given).method == "model") is by_model
