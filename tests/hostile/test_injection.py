"""Containment by structure: what content says never becomes what the system or the user says.

Nothing here asks a model whether it was fooled. What is checked is the request that it is sent and
the view that comes of it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import Message, check, is_result, text_of, tool_calls_of
from praison_compressor.summaries.prompts import INSTRUCTIONS
from tests.hostile.attacks import CANARY, Attack, attacks

SMALL = CompressorConfig(
    model="gpt-4o", context_window=3_000, protect_last_n_tokens=300, head_tokens=100
)
LOOKALIKES = str.maketrans("асерхоіѕ", "acepxois")
MARK = re.compile(
    r"^[^\w\\]*\[\W*(user|human|assistant|system|developer|tool|result of|calls|reference)\b", re.I
)

CONTROL = re.compile(
    r"<[|｜][^<>]{1,40}[|｜]>|\[/?(?:INST|SYSTEM_PROMPT|TOOL_RESULTS|gMASK)\]|<<SYS>>|<system>"
    r"|<\w+_of_turn>|<[be]os>|<sop>|<seed:\w+>|<extra_id_\d>"
)

# In a static summary nothing but the section of this name is the user's.
POSING = re.compile(r"\W{0,9}the user said(?!$)|user:|system:", re.I)


class Recorder:
    """A user's own summarizer that keeps what it was sent, and with what."""

    def __init__(self) -> None:
        self.requests: list[list[Message]] = []
        self.keywords: list[dict[str, Any]] = []

    async def __call__(self, messages: list[Message], **keywords: Any) -> str:
        self.requests.append(messages)
        self.keywords.append(keywords)
        return "## Done\nThe modules so far are in order."


def folded(text: str) -> str:
    """The text as a careless reader sees it: look-alikes made alike, the invisible left out."""
    plain = unicodedata.normalize("NFKD", text).casefold().translate(LOOKALIKES)
    kept = "".join(c for c in plain if unicodedata.category(c) not in ("Cf", "Mn", "Cc", "Me"))
    return re.sub(r"[\s\\_-]+", "", kept).replace("‹", "<")


def tags(text: str, name: str) -> tuple[int, int]:
    """How often a tag opens and closes for such a reader."""
    flat = folded(text)
    bare = folded(name)
    return len(re.findall(rf"<{bare}", flat)), len(re.findall(rf"</+{bare}", flat))


def spoken_lines(messages: list[Message]) -> int:
    """How many marks of speakers and calls a rendering of these messages has."""
    return sum(1 + len(() if is_result(m) else tool_calls_of(m)) for m in messages)


def section(text: str, title: str) -> str:
    """Everything under the headings of that title, whatever ends the lines."""
    parts = re.split(r"(?m)^## ", "\n".join(text.splitlines()))
    return "\n".join(part for part in parts if part.startswith(title))


@pytest.fixture(params=attacks(), ids=lambda attack: f"{attack.technique}, {attack.carrier}")
def attack(request: pytest.FixtureRequest) -> Attack:
    """One attack of the corpus."""
    found: Attack = request.param
    return found


def test_the_corpus_is_large_enough() -> None:
    """At least 150 attacks by at least ten techniques."""
    corpus = attacks()
    assert len(corpus) >= 150
    assert len({attack.technique for attack in corpus}) >= 10


def test_the_request_is_ours_and_the_content_stays_inside(attack: Attack) -> None:
    """Two messages, our words in the first, one frame in the second, and no tools."""
    model = Recorder()
    result = ContextCompressor(SMALL, summarizer=model).compress_sync(attack.transcript())
    asked = "\n".join(text_of(messages[1]) for messages in model.requests)
    assert result.summary_method == "model"
    assert [[m["role"] for m in messages] for messages in model.requests] == [
        ["system", "user"] for _ in model.requests
    ]
    assert {messages[0]["content"] for messages in model.requests} == {INSTRUCTIONS}
    assert {name for given in model.keywords for name in given} <= {
        "max_tokens",
        "model",
        "timeout_seconds",
    }
    assert tags(asked, "transcript") == (len(model.requests), len(model.requests))
    assert tags(asked, "conversation-summary") == (0, 0)
    assert tags(asked, "partial-summaries") == tags(asked, "earlier-summaries") == (0, 0)
    assert CONTROL.findall(asked) == []


def test_nobody_else_speaks_in_the_request(attack: Attack) -> None:
    """As many speakers as there are messages: no line of content poses as one."""
    model = Recorder()
    ours = ContextCompressor(SMALL, summarizer=model)
    ours.compress_sync(attack.transcript())
    entries = ours.store.open("default", ours.session_id).entries
    shown = [m for entry in entries for m in ours.store.originals(ours_session(ours), entry) or ()]
    marks = [
        line
        for messages in model.requests
        for line in text_of(messages[1]).splitlines()
        if MARK.match(line)
    ]
    assert len(marks) == spoken_lines(shown)


def ours_session(ours: ContextCompressor) -> Any:
    """The only session of this compressor."""
    return ours.store.open("default", ours.session_id)


def test_the_static_view_keeps_every_word_in_its_place(attack: Attack) -> None:
    """One frame, one section of the user's words, and only the user's words in it."""
    ours = ContextCompressor(SMALL)
    result = ours.compress_sync(attack.transcript())
    framed = [text_of(segment.rendered) for segment in result.segments]
    said = "\n".join(section(text, "The user said") for text in framed)
    instructions = [m for m in result.messages if m["role"] in ("system", "developer")]
    assert check(result.messages) == []
    assert instructions == attack.transcript()[:1]
    assert [tags(text, "conversation-summary") for text in framed] == [(1, 1) for _ in framed]
    lines = [line for text in framed for line in text.splitlines()]
    assert lines.count("## The user said") <= len(framed)
    assert [line for line in lines if POSING.match(line)] == []
    assert CONTROL.findall("\n".join(framed)) == []
    assert (CANARY in said) <= attack.by_user
    assert {segment.rendered["role"] for segment in result.segments} == {"user"}


def test_a_model_that_repeats_an_attack_cannot_leave_its_frame(attack: Attack) -> None:
    """The attack as a summary: one frame, and no section that looks like the extractor's."""

    async def obeys(messages: list[Message]) -> str:
        return f"## Done\nThe modules are in order.\n{attack.text}"

    result = ContextCompressor(SMALL, summarizer=obeys).compress_sync(attack.transcript())
    texts = [text_of(segment.rendered) for segment in result.segments]
    assert [tags(text, "conversation-summary") for text in texts] == [(1, 1) for _ in texts]
    assert CANARY not in "".join(section(text, "The user said") for text in texts) or attack.by_user
