"""Quoted content never becomes a message of the system or of the user.

Nothing here asks a model whether it was fooled. What is checked is the request that it is sent and
the view that comes of it.
"""

import re
import unicodedata
from typing import Any

import pytest

from praison_compressor import CompressorConfig, CompressResult, ContextCompressor
from praison_compressor.messages import (
    Message,
    is_result,
    read_transcript,
    text_of,
    tool_calls_of,
)
from praison_compressor.summaries.prompts import SUMMARY_INSTRUCTIONS
from tests.helpers.transcripts import find_repairs
from tests.hostile.attacks import CANARY, CONTROL, Attack, attacks, transcript

SMALL = CompressorConfig(
    model="gpt-4o", context_window=3_000, protect_last_n_tokens=300, head_tokens=100
)
LOOKALIKES = str.maketrans("асерхоіѕ", "acepxois")
MARK = re.compile(
    r"^[^\w\\]*\[\W*(user|human|assistant|system|developer|tool|result of|calls|reference)\b", re.I
)
# In a static summary only this section is the user's; a heading after a backslash is none.
POSING = re.compile(r"[^\w\\]{0,9}the user said(?!$)|user:|system:", re.I)


class Recorder:
    """A summarizer that keeps its requests and repeats a text."""

    def __init__(self, answer: str) -> None:
        self.requests: list[list[Message]] = []
        self.keywords: set[str] = set()
        self.answer = f"## Done\nThe modules so far are in order.\n{answer}"

    async def __call__(self, messages: list[Message], **keywords: Any) -> str:
        self.requests.append(messages)
        self.keywords |= set(keywords)
        return self.answer


def folded(text: str) -> str:
    """Return a text without invisible characters, look-alikes replaced."""
    plain = unicodedata.normalize("NFKD", text).casefold().translate(LOOKALIKES)
    kept = "".join(c for c in plain if unicodedata.category(c) not in ("Cf", "Mn", "Cc", "Me"))
    return re.sub(r"[\s\\_-]+", "", kept).replace("‹", "<")


def tags(text: str, name: str) -> tuple[int, int]:
    """Return how often a tag opens and closes in a folded text."""
    flat, bare = folded(text), folded(name)
    return len(re.findall(rf"<{bare}", flat)), len(re.findall(rf"</+{bare}", flat))


def framed(result: CompressResult) -> list[str]:
    """Return the texts of the summaries: each in one frame, in the user's role."""
    texts = [text_of(segment.rendered) for segment in result.segments]
    assert [tags(text, "conversation-summary") for text in texts] == [(1, 1) for _ in texts]
    assert {segment.rendered["role"] for segment in result.segments} == {"user"}
    return texts


def said_by_the_user(texts: list[str]) -> str:
    """Return everything under the headings of the user's words, whatever ends the lines."""
    parts = re.split(r"(?m)^## ", "\n".join(line for text in texts for line in text.splitlines()))
    return "\n".join(part for part in parts if part.startswith("The user said"))


def kind(attack: Attack) -> tuple[str, str]:
    """Return an attack's technique and carrier."""
    return attack.technique, attack.carrier


@pytest.fixture(scope="module", params=dict.fromkeys(map(kind, attacks())), ids="-".join)
def attacked(request):
    """Return all attacks of one kind, a model that repeats them, a compressor and its result."""
    found = [attack for attack in attacks() if kind(attack) == request.param]
    model = Recorder("\n".join(attack.text for attack in found))
    ours = ContextCompressor(SMALL, summarizer=model)
    return found, model, ours, ours.compress_sync(transcript(*found))


def test_content_stays_inside_a_summarys_frame(attacked):
    """Content that a summary repeats leaves neither its frame nor its section."""
    found, _, _, result = attacked
    texts = framed(result)
    assert (CANARY in said_by_the_user(texts)) <= found[0].by_user


def test_content_stays_inside_a_requests_frame(attacked):
    """Content that a request carries stays inside the request's one frame."""
    found, model, *_ = attacked
    first, *again = [text_of(messages[1]) for messages in model.requests]
    assert {*again} <= {first}
    assert first.count(CANARY) >= 2 * len(found)
    assert {tuple(m["role"] for m in each) for each in model.requests} == {("system", "user")}
    assert {messages[0]["content"] for messages in model.requests} == {SUMMARY_INSTRUCTIONS}
    assert model.keywords <= {"max_tokens", "model", "timeout_seconds"}
    assert tags(first, "transcript") == (1, 1)
    for name in ("conversation-summary", "partial-summaries", "earlier-summaries"):
        assert tags(first, name) == (0, 0)
    assert CONTROL.findall(first) == []


def test_content_never_poses_as_a_message(attacked):
    """Only the messages of a request begin a line with a role."""
    _, model, ours, _ = attacked
    first = text_of(model.requests[0][1])
    session = ours.store.open("default", ours.session_id)
    kept = [m for each in session.entries for m in ours.store.originals(session, each) or ()]
    shown = read_transcript(kept).messages
    spoken = sum(1 + len(() if is_result(m) else tool_calls_of(m)) for m in shown)
    assert sum(MARK.match(line) is not None for line in first.splitlines()) == spoken


@pytest.mark.parametrize("attack", attacks(), ids=lambda attack: ", ".join(kind(attack)))
def test_the_static_view_keeps_every_word_in_its_place(attack):
    """Content that a static summary quotes leaves neither its frame nor its section."""
    result = ContextCompressor(SMALL).compress_sync(transcript(attack))
    texts = framed(result)
    lines = [line for text in texts for line in text.splitlines()]
    assert find_repairs(result.messages) == []
    assert [m for m in result.messages if m["role"] == "system"] == transcript()[:1]
    assert lines.count("## The user said") <= len(texts)
    assert [line for line in lines if POSING.match(line)] == []
    assert CONTROL.findall("\n".join(texts)) == []
    assert (CANARY in said_by_the_user(texts)) <= attack.by_user
