"""Without I/O: the list of items, the marks, the choice of a fold."""

import base64
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praison_compressor import ConfigError
from praison_compressor.messages import read_transcript
from praison_compressor.praisonai.realtime import Marks
from praison_compressor.praisonai.realtime.folding import choose_items
from praison_compressor.praisonai.realtime.items import Items, messages_of
from tests.helpers.realtime_server import Event
from tests.helpers.transcripts import find_repairs


def follower(*events: Event) -> Items:
    found = Items()
    for event in events:
        found.apply(event)
    return found


def user(item_id: str, **more: Any) -> Event:
    content = [{"type": "input_text", "text": "hello"}]
    return {"id": item_id, "type": "message", "role": "user", "content": content, **more}


def added(item: Event, **more: Any) -> Event:
    return {"type": "conversation.item.added", "item": {"status": "completed", **item}, **more}


def spoken(item_id: str, transcript: str | None = None) -> Event:
    content = [{"type": "input_audio", "transcript": transcript}]
    return {"id": item_id, "type": "message", "role": "user", "content": content}


def call(item_id: str, call_id: str) -> Event:
    called = {"call_id": call_id, "name": "lookup", "arguments": "{}"}
    return {"id": item_id, "type": "function_call", **called}


def output(item_id: str, call_id: str) -> Event:
    return {"id": item_id, "type": "function_call_output", "call_id": call_id, "output": "done"}


# ---------------------------------------------------------------- the list


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), max_size=30), st.lists(st.integers(0, 29), max_size=10))
def test_the_order_is_the_servers(places, gone):
    """The list has the server's order after any insertions and deletions."""
    theirs = ["first"]
    found = follower(added(user("first"), previous_item_id=None))
    for number, place in enumerate(places):
        at = min(place, len(theirs) - 1)
        found.apply(added(user(f"item_{number}"), previous_item_id=theirs[at]))
        theirs.insert(at + 1, f"item_{number}")
    for number in gone:
        found.apply({"type": "conversation.item.deleted", "item_id": f"item_{number}"})
    assert [item.id for item in found] == [
        item for item in theirs if item not in {f"item_{number}" for number in gone}
    ]


def test_speech_is_final_when_its_transcript_came_or_failed():
    """Speech is final once its transcript came or failed."""
    found = follower(added(spoken("u1")), added(spoken("u2")))
    one, two = found
    assert not one.is_final
    kind = "conversation.item.input_audio_transcription"
    found.apply({"type": f"{kind}.completed", "item_id": "u1", "transcript": "Hello there"})
    found.apply({"type": f"{kind}.failed", "item_id": "u2", "error": {}})
    assert (one.is_final, one.text) == (True, "Hello there")
    assert (two.is_final, two.text) == (True, "(speech without words)")


def test_audio_is_never_kept():
    """Only the length of audio is kept."""
    sound = base64.b64encode(b"SECRET SOUND" * 400).decode()
    part = {"type": "output_audio", "audio": sound, "transcript": "Hi"}
    item = {"id": "a", "type": "message", "role": "assistant", "content": [part]}
    heard_part = {"type": "input_audio", "audio": sound, "transcript": "Hi"}
    found = follower(
        added(item),
        added({**user("u"), "content": [heard_part]}),
        {"type": "response.output_audio.delta", "item_id": "a", "delta": sound},
        {"type": "conversation.item.done", "item": item},
        {"type": "response.done", "response": {"output": [item], "usage": {"input_tokens": 1}}},
    )
    assert sound[:40].encode() not in pickle.dumps(list(found))
    answer = found.get("a")
    assert answer.audio_ms == pytest.approx(4800 / 48)


# ---------------------------------------------------------------- barge-in


_DONE = "response.output_audio_transcript.done"


def interrupted(*late: Event) -> str:
    """Return the words of an answer of 1000 ms, cut at 400 ms, after late events."""
    item = {"id": "a", "type": "message", "role": "assistant", "content": []}
    sound = base64.b64encode(bytes(48 * 1000)).decode()
    found = follower(
        {"type": "conversation.item.added", "item": {**item, "status": "in_progress"}},
        {"type": "response.output_audio.delta", "item_id": "a", "delta": sound},
        {"type": _DONE, "item_id": "a", "transcript": "one two three four five"},
        {"type": "conversation.item.truncated", "item_id": "a", "audio_end_ms": 400},
        *late,
    )
    return str(found.get("a").text)


_CUT = {"type": "conversation.item.truncated", "item_id": "a", "audio_end_ms": 200}
_FINAL = {"id": "a", "type": "message", "role": "assistant", "status": "incomplete"}
_PART = {"type": "output_audio", "transcript": "one two three four five"}


@pytest.mark.parametrize(
    ("late", "left"),
    [
        ([], "one two"),
        ([{"type": _DONE, "item_id": "a", "transcript": _PART["transcript"]}], "one two"),
        ([{"type": "conversation.item.done", "item": {**_FINAL, "content": [_PART]}}], "one two"),
        ([{"type": _DONE.replace("done", "delta"), "item_id": "a", "delta": " six"}], "one two"),
        ([_CUT], "one"),
        ([_CUT, {**_CUT, "audio_end_ms": 900}], "one"),
    ],
)
def test_only_words_that_were_heard_remain(late, left):
    """No late event brings unheard words back."""
    assert interrupted(*late) == left


# ---------------------------------------------------------------- the marks


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_history_items": 5},
        {"trigger_items": 5},
        {"max_history_items": 5, "trigger_items": 5},
        {"max_history_items": 0, "trigger_items": 5},
        {"max_history_items": True, "trigger_items": 5},
    ],
)
def test_marks_that_cannot_work_are_refused(wrong):
    """Marks are refused unless `trigger_items` exceeds a positive `max_history_items`."""
    with pytest.raises(ConfigError):
        Marks(**wrong)


# ---------------------------------------------------------------- the choice


@st.composite
def conversations(draw: Any) -> Any:
    """Generate messages, speech, and calls answered at once, late or never."""
    events = []
    owed: list[str] = []
    for number in range(draw(st.integers(0, 30))):
        kind = draw(st.sampled_from(["say", "say", "speak", "call", "answer", "answer"]))
        item_id = f"i{number}"
        if kind == "call":
            owed.append(f"c{number}")
            events.append(added(call(item_id, f"c{number}")))
        elif kind == "answer" and owed:
            events.append(added(output(item_id, owed.pop(draw(st.integers(0, len(owed) - 1))))))
        elif kind == "speak":
            events.append(added(spoken(item_id, draw(st.sampled_from([None, "well"])))))
        else:
            events.append(added(user(item_id)))
    return follower(*events)


@settings(max_examples=60)
@given(conversations(), st.integers(1, 12), st.integers(1, 12))
def test_a_fold_takes_the_old_and_splits_nothing(items, low, more):
    """A fold takes whole, final items before the newest `max_history_items`."""
    marks = Marks(low, low + more)
    window = items.live()
    chosen = choose_items(items, marks)
    assert len(window) >= marks.trigger_items or not chosen
    assert len(window) - len(chosen) >= low or not chosen
    assert all(item in window[: len(window) - low] for item in chosen)
    overdue = items.sequence - 2 * marks.trigger_items
    left = [item for item in window if item not in chosen]
    assert not {i.call_id for i in chosen if i.call_id} & {i.call_id for i in left if i.call_id}
    assert all(item.is_final or item.sequence < overdue for item in chosen)
    answered = {item.call_id for item in chosen if item.type == "function_call_output"}
    calls = [item for item in chosen if item.type == "function_call"]
    assert all(item.call_id in answered or item.sequence < overdue for item in calls)
    messages = messages_of(chosen)
    assert find_repairs(read_transcript(messages).messages) == []
    assert {item.id for item in chosen} == {message["id"] for message in messages}


def test_leading_system_messages_are_never_folded():
    """Leading system messages are never folded."""
    system = {**user("s"), "role": "system"}
    found = follower(added(system), *(added(user(f"i{n}")) for n in range(6)))
    batch = choose_items(found, Marks(2, 5))
    assert [item.id for item in batch] == ["i0", "i1", "i2", "i3"]
