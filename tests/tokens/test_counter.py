"""Messages, images and tools by the published rules, each message counted once."""

import base64
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praison_compressor import TokenCounter
from praison_compressor.tokens.counter import REPLY_TOKENS, SECTIONED_CHARS
from praison_compressor.tokens.learned import Calibration
from praison_compressor.tokens.models import Vocabulary
from tests.helpers.transcripts import prose

# ---------------------------------------------------------------- messages

# OpenAI's own example, with the counts that its API reported.
WORDS = {
    "You are a helpful, pattern-following assistant that translates corporate jargon into plain "
    "English.": None,
    "New synergies will help drive top-line growth.": "example_user",
    "Things working well together will increase revenue.": "example_assistant",
    "Let's circle back when we have more bandwidth to touch base on opportunities for increased "
    "leverage.": "example_user",
    "Let's talk later when we're less busy about how to do better.": "example_assistant",
}
ASKED = "This late pivot means we don't have time to boil the ocean for the client deliverable."
EXAMPLE: list[dict[str, Any]] = [
    *({"role": "system", "content": words, "name": name} for words, name in WORDS.items()),
    {"role": "user", "content": ASKED},
]


@pytest.mark.parametrize(("model", "reported"), [("gpt-4o", 124), ("gpt-4", 129)])
def test_openais_own_example_has_the_count_that_its_api_reported(model, reported):
    """OpenAI's published example has the count that its API reported."""
    counter = TokenCounter(model)
    assert counter.messages(EXAMPLE) == reported
    assert sum(map(counter.message, EXAMPLE)) == reported - REPLY_TOKENS


BARE = {"role": "assistant", "content": "Done."}


def test_a_message_is_more_than_its_text():
    """Calls, thinking, refusals, images and unknown parts count."""
    counter = TokenCounter("gpt-4o")
    function = {"name": "read_file", "arguments": '{"path": "src/app.py"}'}
    additions: list[dict[str, Any]] = [
        {"tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"name": "helper"},
        {"refusal": "I would rather not."},
        {"reasoning_content": "Let me think about the path."},
        {"thinking_blocks": [{"type": "thinking", "thinking": "About it.", "signature": "s" * 99}]},
        {"content": [{"type": "text", "text": "Done."}, {"type": "new", "thing": [1, 2]}]},
        {"content": [{"type": "text", "text": "Done."}, {"type": "image_url", "image_url": "u"}]},
    ]
    plain = counter.message(BARE)
    assert [a for a in additions if counter.message({**BARE, **a}) <= plain] == []


def test_what_no_model_reads_is_not_counted():
    """Private keys, call ids and cache marks do not count."""
    counter = TokenCounter("gpt-4o")
    silent: list[dict[str, Any]] = [
        {"_private": "x" * 999},
        {"tool_calls": None},
        {"tool_call_id": "call_" + "9" * 40},
        {"content": [{"type": "text", "text": "Done.", "cache_control": {"type": "ephemeral"}}]},
    ]
    plain = counter.message(BARE)
    assert [a for a in silent if counter.message({**BARE, **a}) != plain] == []


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4", "some-model"])
def test_many_messages_count_as_each_does_alone(model):
    """Messages counted in one call have the counts that each has alone, whatever their texts."""
    texts = [prose(300), "", ".", "\n", "a <|endoftext|> b", "漢字 é\u200b", "x" * 70_000, "12345"]
    messages = [
        {"role": role, "name": f"n{n}", "content": text}
        for n in range(30)
        for role in ("user", "assistant")
        for text in texts
    ]
    messages += [{"role": "user", "content": [{"type": "text", "text": prose(50)}]}]
    alone = sum(TokenCounter(model).message(message) for message in messages)
    assert TokenCounter(model).messages(messages) == alone + REPLY_TOKENS


pieces = st.text() | st.sampled_from(["\n## ", "\n</", "  \n", ".\n", "\r\n", "'s\n", "/\n", "1"])


@settings(max_examples=300)
@given(st.lists(pieces, min_size=1, max_size=12), st.sampled_from(["gpt-4o", "gpt-4"]))
def test_a_text_counted_by_sections_has_the_count_of_the_whole(parts, model):
    """A cut before a heading changes no count, whatever stands around it."""
    once = "".join(parts) or " "
    counter, text = TokenCounter(model), once * (SECTIONED_CHARS[0] // len(once) + 1)
    assert counter.text(text) == counter.vocabulary.count(text)


def test_a_section_is_not_counted_again():
    """A text of sections that were counted lately costs only what is new in it."""
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text)

    counter = TokenCounter("gpt-4o", vocabulary=Vocabulary("characters", False, count))
    section = "## Files\n" + "- a.py\n" * 1_000
    assert counter.text(section) == len(section)
    assert counter.text(f"Before.\n{section}</end>") == len(section) + 14
    assert sum(counted) == len(section) + 14


def test_a_counted_message_is_not_counted_again():
    """The tokenizer sees each message once, also in a new dictionary."""
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    counter = TokenCounter("gpt-4o", vocabulary=Vocabulary("characters", False, count))
    transcript = [{"role": "user", "content": f"message {n}"} for n in range(50)]
    before = counter.messages(transcript)
    assert counter.messages([dict(message) for message in transcript]) == before
    assert counted == ["user", *(message["content"] for message in transcript)]
    transcript[7]["content"] = "edited in its place, to something longer"
    assert counter.messages(transcript) > before
    assert counted[51:] == ["edited in its place, to something longer"]


# ---------------------------------------------------------------- images


def png(width: int, height: int) -> str:
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return "data:image/png;base64," + base64.b64encode(data + bytes(20)).decode()


def jpeg(width: int, height: int) -> str:
    exif = b"\xff\xe1" + struct.pack(">H", 5000) + bytes(4998)
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width)
    return (
        "data:image/jpeg;base64," + base64.b64encode(b"\xff\xd8" + exif + frame + b"0" * 9).decode()
    )


@pytest.mark.parametrize(
    ("model", "url", "detail", "tokens"),
    [
        # OpenAI's documented examples for tiles, then for patches.
        ("gpt-4o", png(1024, 1024), "high", 765),
        ("gpt-4o", jpeg(2048, 4096), "high", 1105),
        ("gpt-4o", png(4096, 8192), "low", 85),
        ("gpt-4o-mini", png(1024, 1024), "high", 2833 + 4 * 5667),
        ("gpt-4.1-mini", png(1024, 1024), None, 1659),
        ("gpt-4.1-mini", png(1800, 2400), None, 2353),
        # A link is not followed: 1024 x 1024 is assumed.
        ("gpt-4o", "https://example.com/a.png", None, 765),
        # Anthropic's: width x height / 750.
        ("claude-sonnet-4-5", png(1000, 1000), None, 1334),
    ],
)
def test_images_cost_what_is_documented(model, url, detail, tokens):
    """Images cost the documented tokens, with sizes read from inline data alone."""
    image = {"url": url} if detail is None else {"url": url, "detail": detail}
    counter = TokenCounter(model)
    without = counter.message({"role": "user", "content": []})
    part = {"type": "image_url", "image_url": image}
    assert counter.message({"role": "user", "content": [part]}) - without == tokens


@pytest.mark.parametrize("url", ["", "data:image/png;base64,%%%", "data:,x", "x" * 100, 7, None])
def test_a_broken_image_has_a_count(url):
    """An unreadable image counts as one of the default size."""
    part = {"type": "image_url", "image_url": {"url": url}}
    assert TokenCounter("gpt-4o").message({"role": "user", "content": [part]}) > 700


# ---------------------------------------------------------------- tools

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location.",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "The city, e.g. Boston"},
                "unit": {"type": "string", "description": "Unit", "enum": ["celsius", "kelvin"]},
            },
        },
    },
}


@pytest.mark.parametrize(("model", "start"), [("gpt-4o", 7), ("gpt-4", 10)])
def test_tools_are_counted_by_the_published_rule(model, start):
    """Name, description, properties and choices have their published constants."""
    counter = TokenCounter(model)
    text = counter.text
    expected = start + text("get_current_weather:Get the current weather in a given location")
    expected += 3
    expected += 3 + text("location:string:The city, e.g. Boston")
    expected += 3 - 3 + 3 + text("celsius") + 3 + text("kelvin") + text("unit:string:Unit")
    assert counter.tools([WEATHER]) == expected + 12
    assert counter.tools([WEATHER, WEATHER]) == 2 * expected + 12


def test_tools_come_in_every_apis_shape():
    """A tool counts the same in the shapes of all three APIs."""
    counter = TokenCounter("gpt-4o")
    flat = {"type": "function", **WEATHER["function"]}
    anthropic = {**WEATHER["function"], "input_schema": WEATHER["function"]["parameters"]}
    del anthropic["parameters"]
    assert len({counter.tools([tool]) for tool in (WEATHER, flat, anthropic)}) == 1
    assert counter.tools([{"type": "web_search"}]) > 0
    assert counter.tools(None) == counter.tools([]) == 0


def test_a_nested_schema_counts_at_every_depth():
    """Properties inside items and alternatives count."""
    counter = TokenCounter("gpt-4o")
    deep: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    wraps: list[dict[str, Any]] = [{"type": "array", "items": deep}, {"anyOf": [deep]}, {}]
    *counts, empty = (
        counter.tools([{"name": "f", "parameters": {"properties": {"list": wrap}}}])
        for wrap in wraps
    )
    assert min(counts) > empty + 5


# ---------------------------------------------------------------- what the provider reports


@pytest.mark.parametrize("ratio", [1.3, 0.9])
def test_an_unknown_tokenizer_converges_in_three_turns(ratio):
    """Three reports that are 30 % higher, or a tenth lower, correct the count."""
    counter = TokenCounter("some-model")
    truth = TokenCounter("some-model")
    turns = [{"role": "user", "content": prose(200, seed)} for seed in range(6)]
    for turn in range(1, 4):
        counter.calibrate(turns[:turn], round(truth.messages(turns[:turn]) * ratio))
    assert counter.messages(turns) == pytest.approx(truth.messages(turns) * ratio, rel=0.01)
    assert f"corrected by {ratio:.2f}" in counter.source


def test_an_exact_counter_stays_exact():
    """An exact counter follows only a report that differs by more than 2 %."""
    counter = TokenCounter("gpt-4o")
    exact = counter.messages(EXAMPLE)
    counter.calibrate(EXAMPLE, round(exact * 1.01))
    assert counter.messages(EXAMPLE) == exact
    counter.calibrate(EXAMPLE, round(exact * 1.2))
    assert counter.messages(EXAMPLE) > exact


@pytest.mark.parametrize("reported", [0, -5, 1, 10**9])
def test_an_unbelievable_report_is_not_learned(reported):
    """A proxy's zero, or another request's usage, changes no count."""
    counter = TokenCounter("some-model")
    counter.calibrate(EXAMPLE, reported)
    assert counter.ratio == 1


def test_a_report_of_five_times_the_count_needs_a_second_one():
    """A report of five times the count is accepted after a second one."""
    counter = TokenCounter("some-model")
    counted = counter.messages(EXAMPLE)
    ratios = []
    for times in (1, 5, 1, 5, 5, 5):
        counter.calibrate(EXAMPLE, counted * times)
        ratios.append(round(counter.messages(EXAMPLE) / counted))
    assert ratios == [1, 1, 1, 1, 5, 5]


LOW = {
    "cut at 4,096": lambda tokens, turn: min(tokens, 4_096),
    "without the cached part": lambda tokens, turn: tokens if turn == 0 else int(tokens * 0.3),
    "half": lambda tokens, turn: tokens // 2,
}


@pytest.mark.parametrize("model", ["gpt-4o", "some-model"])
@pytest.mark.parametrize("report", LOW.values(), ids=LOW)
def test_a_report_that_is_too_low_changes_no_count(model, report):
    """A report that is too low teaches at most a truncating server's window."""
    counter, truth = TokenCounter(model), TokenCounter(model)
    turns = [{"role": "user", "content": prose(250, seed)} for seed in range(20)]
    found: list[int | None] = []
    for turn in range(1, 20):
        tokens = truth.messages(turns[:turn])
        found.append(counter.calibrate(turns[:turn], report(tokens, turn - 1)))
        assert counter.ratio >= (1 if counter.exact else 0.9)
    window = 4_096 if report(10**6, 1) == 4_096 else None
    assert (found[0], found[-2:]) == (None, [window, window])


def test_a_report_that_repeats_for_a_longer_request_is_unlearned():
    """A correction is taken back if a longer request gets the same report."""
    counter = TokenCounter("some-model")
    turns = [{"role": "user", "content": prose(250, seed)} for seed in range(5)]
    reported = round(0.9 * counter.messages(turns[:4]))
    counter.calibrate(turns[:4], reported)
    assert counter.ratio == pytest.approx(0.9, rel=0.01)
    counter.calibrate(turns, reported)
    assert counter.ratio == 1


@pytest.mark.parametrize(
    ("counted", "window"), [((5_000, 6_000, 7_000), 4_096), ((5_000, 5_050, 5_090), None)]
)
def test_a_truncating_server_shows_in_three_equal_reports(counted, window):
    """Three equal reports teach a window if each request grew by over 2 %."""
    calibration = Calibration(exact=False)
    assert [calibration.learn(tokens, 4_096) for tokens in counted] == [None, None, window]
