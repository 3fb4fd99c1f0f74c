"""The Responses API's items come back from messages as they were."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.messages import check, steps
from praison_compressor.messages.responses import to_items, to_messages

texts = st.text(min_size=1, max_size=20).filter(str.strip)
ids = st.integers(0, 10_000).map(lambda n: f"call_{n}")


def said(role: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"role": st.just(role), "content": texts})


@st.composite
def tool_steps(draw: st.DrawFn) -> list[dict[str, Any]]:
    """An answer with calls, and their outputs."""
    names = draw(st.lists(ids, min_size=1, max_size=4, unique=True))
    items = draw(st.lists(said("assistant"), max_size=1))
    items += [
        {"type": "function_call", "call_id": i, "name": draw(texts), "arguments": "{}"}
        for i in names
    ]
    return items + [
        {"type": "function_call_output", "call_id": i, "output": draw(texts)} for i in names
    ]


@st.composite
def requests(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Items as the host builds them from a conversation."""
    items: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 5))):
        items.append(draw(said("user")))
        for step in draw(st.lists(tool_steps(), max_size=2)):
            items += step
        items.append(draw(said("assistant")))
    return [*items, draw(said("user"))]


@given(requests(), st.none() | texts)
def test_items_come_back_as_they_were(items: list[dict[str, Any]], words: str | None) -> None:
    """What nobody changed is sent byte for byte as the host built it."""
    before = copy.deepcopy(items)
    assert to_items(to_messages(words, items)) == (words, items)
    assert items == before


@given(requests())
def test_items_are_a_valid_conversation(items: list[dict[str, Any]]) -> None:
    """Every call is followed by its results within one step."""
    messages = to_messages("Keep the books.", items)
    assert check(messages) == []
    calls = [m for m in messages if m.get("tool_calls")]
    assert sum(len(s) > 1 for s in map(list, steps(messages))) == len(calls)


def test_reasoning_stays_with_its_calls() -> None:
    """The API refuses a call without its reasoning item: both are one message, so one step."""
    items = [
        {"role": "user", "content": "Go."},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": "2"},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
        },
        {"role": "user", "content": "Thanks."},
    ]
    messages = to_messages(None, items)
    assert [m["role"] for m in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert to_items(messages) == (None, items)


def test_images_are_translated_both_ways() -> None:
    """`input_image` and `image_url` are one thing."""
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"}
    items = [{"role": "user", "content": [{"type": "input_text", "text": "Look."}, image]}]
    (message,) = to_messages(None, items)
    assert message["content"][1]["image_url"] == {"url": image["image_url"], "detail": "low"}
    assert to_items([message]) == (None, items)
