"""One message of any shape: its calls, its text."""

from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from praison_compressor import TokenCounter
from praison_compressor.messages import result_text, text_of, tool_calls_of
from praison_compressor.messages.display import message_as_text
from praison_compressor.summaries.prompts import render_messages

NESTED = {"name": "run", "arguments": '{"x": 1}'}


@pytest.mark.parametrize(
    "given",
    [
        {"id": "a", "type": "function", "function": NESTED},
        {"id": "a", "function": {"name": "run", "arguments": {"x": 1}}},
        MappingProxyType({"id": "a", "function": MappingProxyType(NESTED)}),
        SimpleNamespace(id="a", function=SimpleNamespace(**NESTED)),
        SimpleNamespace(id="a", name="run", arguments={"x": 1}),
        {"id": "a", "type": "custom", "custom": {"name": "run", "input": '{"x": 1}'}},
        {"id": "a", "type": "tool_use", "name": "run", "input": {"x": 1}},
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_call_is_read_in_every_shape_it_comes_in(given):
    """A call is read from dictionaries, mappings and objects, nested or flat."""
    (made,) = tool_calls_of({"role": "assistant", "tool_calls": (given,)})
    assert (made.id, made.name, made.arguments) == ("a", "run", '{"x": 1}')


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("words", "words"),
        (["one", {"type": "text", "text": "two"}, 3, {"type": "image_url"}], "one\ntwo"),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "inner"}]}], "inner"),
        ([{"type": "other", "content": "inner"}], "inner"),
        (5, "5"),
        (b"ab", "b'ab'"),
    ],
)
def test_the_text_of_each_part_is_a_line(content, text):
    """The text of each readable part is a line."""
    assert text_of({"role": "user", "content": content}) == text


@pytest.mark.parametrize(
    ("role", "text", "written"),
    [
        ("tool", '"a\\nb"', "a\nb"),
        ("function", '""', ""),
        *((role, text, text) for role, text in [("user", '"a\\nb"'), ("tool", '"a" or "b"')]),
        *(("tool", text, text) for text in ('"', '"a', 'a"', "5", "")),
    ],
)
def test_only_a_result_that_is_one_json_string_is_unpacked(role, text, written):
    """Only a tool's result that is one JSON string is unpacked."""
    assert result_text({"role": role, "content": text}) == written


WORDS = "The deployment key lives in vault seven. " * 20
BODY = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA" * 400
CITED = {"type": "url_citation", "url_citation": {"title": WORDS, "url": "https://example.com"}}
TEXT = {"type": "text", "text": WORDS}


def part(type: str, **more: Any) -> dict[str, Any]:
    """Return a message with one part."""
    return {"content": [{"type": type, **more}]}


FOUND = {"type": "web_search_result", "title": WORDS, "encrypted_content": BODY}
RAN = {"type": "code_execution_result", "stdout": WORDS, "return_code": 0}
MCP = {"type": "mcp_call", "name": "t", "arguments": "{}", "output": WORDS}
PLAIN = {"type": "text", "media_type": "text/plain", "data": WORDS}
SPOKEN = {"input_audio": {"data": BODY, "format": "wav"}, "transcript": WORDS}
HOLDING_WORDS: dict[str, dict[str, Any]] = {
    "an audio answer": {"content": None, "audio": {"id": "a", "transcript": WORDS}},
    "a refusal beside": {"content": None, "refusal": WORDS},
    "a refusal among parts": part("refusal", refusal=WORDS),
    "citations beside": {"content": "Found.", "annotations": [CITED]},
    "citations of a text": part("text", text="Found.", annotations=[CITED]),
    "a spoken part": part("input_audio", **SPOKEN),
    "a document's text": part("document", source=PLAIN),
    "a document's content": part("document", source={"type": "content", "content": [TEXT]}),
    "a search result": part("search_result", source="s", content=[TEXT]),
    "a web search": part("web_search_tool_result", tool_use_id="s", content=[FOUND]),
    "an execution": part("code_execution_tool_result", content=RAN),
    "an mcp result": part("mcp_tool_result", content=[TEXT]),
    "an mcp call's item": {"content": None, "response_items": [MCP]},
}


@pytest.mark.parametrize("said", HOLDING_WORDS.values(), ids=HOLDING_WORDS)
def test_every_word_of_a_message_is_read_and_counted(said):
    """The count, the summarizer and search read the words of every shape."""
    message = {"role": "assistant", **said}
    counter = TokenCounter("gpt-4o")
    words = counter.text(WORDS)
    assert WORDS in text_of(message)
    assert BODY[:40] not in text_of(message)
    assert words <= counter.message(message) <= words + 30 + len(BODY) / 5
    assert WORDS[:80] in "".join(render_messages([message]))
    assert WORDS[:80] in message_as_text(message)


@pytest.mark.parametrize(
    ("part", "least", "most"),
    [
        ({"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{BODY}"}}, 300, 400),
        ({"type": "audio_url", "audio_url": {"url": f"data:audio/wav;base64,{BODY}"}}, 300, 400),
        ({"type": "input_video", "input_video": {"data": BODY}}, 300, 400),
        ({"type": "resource", "resource": {"uri": "file:///a", "blob": BODY}}, 300, 400),
        ({"type": "file", "file": {"file_data": f"data:application/pdf;base64,{BODY}"}}, 300, 400),
        ({"type": "web_fetch_tool_result", "content": {"encrypted_content": BODY}}, 2_500, 2_700),
    ],
)
def test_the_body_of_a_file_is_no_text(part, least, most):
    """A body of 12,800 base64 characters counts as media, or as sealed text."""
    count = TokenCounter("gpt-4o").message({"role": "user", "content": [part]})
    assert least <= count <= most
