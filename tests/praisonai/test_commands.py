"""Slash commands are answered in the chat, by us and not by a model."""

import re
from typing import Any

import pytest

from praison_compressor import SessionNotFound
from praison_compressor.messages import text_of
from praison_compressor.testing import Worker
from praison_compressor.view.frame import is_framed
from tests.helpers.hosting import (
    EVERY_PATH,
    MODES,
    OPENAI,
    OUTGROWING,
    PATHS,
    WINDOW,
    WORDS,
    agent,
    chat,
    context,
    look_up,
    numbered,
    of_agent,
    talked,
    texts_in,
    turn,
)

LINE = re.compile(
    r"Compressed the conversation: [\d.]+k → [\d.]+k? "
    r"\(system \d+, summary [\d.]+k?, kept [\d.]+k?, tools \d+\) · \d+ % of 6\.0k"
)


# ---------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("options", "prompts", "heard"),
    [
        ({"store_url": "sqlite:////proc/nowhere/ledger.db"}, OUTGROWING, "summarized"),
        ({"auto_compact": False}, OUTGROWING, "summarized"),
        ({}, [turn(0, words=800)], "masked"),
        ({}, OUTGROWING, "summarized"),
    ],
)
def test_the_status_counts_what_was_sent(host, options, prompts, heard):
    """The status has the tokens of the last request and those before compression."""
    made = agent(host, OPENAI, context(host, **options))
    assert made.context_compressor.status().tokens == 0
    assert None not in chat(made, prompts)
    status = made.context_compressor.status()
    assert (status.context_status, made.context_compressor.context_status) == (heard, heard)
    assert status.tokens == of_agent(host)[-1].prompt_tokens
    assert status.tokens_before > WINDOW * 0.8 > status.tokens - status.system_tokens > 0
    assert (status.summaries > 0) == (heard == "summarized")
    assert host.refused == []


TALKED = [
    *((OPENAI, mode) for mode in ("chat", "astart", "stream", "iter_stream")),
    *((path, "chat") for path in EVERY_PATH[1:]),
]


class Talk:
    """An agent that has answered eight turns, by one way to ask it."""

    def __init__(self, made: Any, mode: str) -> None:
        self.made, self._mode = made, mode
        self.ours = made.context_compressor
        self.say(*map(turn, range(8)))

    def say(self, *prompts: str) -> list[Any]:
        return MODES[self._mode](self.made, list(prompts))


@pytest.fixture(params=TALKED)
def talk(host, request):
    path, mode = request.param
    return Talk(agent(host, path, context(host)), mode)


def test_compact_reports_what_became_of_the_messages(talk):
    """`/compact` reports a compression in three lines of numbers."""
    (heard,) = talk.say("/compact")
    line, became, sizes = heard.split("\n")
    assert LINE.fullmatch(line)
    assert "(system 0," not in line
    assert re.fullmatch(
        r"\d+ messages summarized by (?:openai/)?aux; \d+ messages kept verbatim. "
        r"/undo undoes it\.",
        became,
    )
    assert re.fullmatch(r"The next request has [\d.]+k instead of [\d.]+k\.", sizes)


def test_the_focus_of_compact_goes_to_the_summarizer(host):
    """The focus of `/compact` goes to the summarizer."""
    talked(host).chat("/compact the harbour dues")
    (asked,) = host.for_model("aux")
    assert "the harbour dues" in asked.text


def test_commands_send_nothing_to_the_agents_model(host, talk):
    """Commands leave no trace in the agent's requests or history."""
    sent, recorded = len(of_agent(host)), len(talk.made.chat_history)
    status, *_ = talk.say("/status", "/compact", "/help", "/context", "/undo")
    assert re.match(r"Last request: .* of 6.0k \(full\)\nPaid: 8 requests, ", status)
    assert (len(of_agent(host)), len(talk.made.chat_history)) == (sent, recorded)


def test_the_summary_is_sent_in_the_next_turn(host, talk):
    """The next turn sends the summary of `/compact`."""
    talk.say("/compact", turn(8))
    assert talk.ours.context_status == "summarized"
    assert any(map(is_framed, of_agent(host)[-1].messages))
    assert host.refused == []


def test_after_an_undo_the_messages_are_sent_again(host, talk):
    """After `/undo` the messages are sent again, instead of the summary."""
    (heard, _) = talk.say("/compact", turn(8))
    summarized = re.search(r"(\d+) messages summarized", heard)[1]
    assert talk.say("/undo")[0].startswith(f"Undone: restored {summarized} messages (")
    talk.say(turn(9), turn(10))
    sent = of_agent(host)[-1].messages
    assert [message["role"] for message in sent].count("user") == 11
    assert not any(map(is_framed, sent))
    assert talk.ours.status().tokens > 0.8 * 0.75 * WINDOW
    assert len(host.for_model("aux")) == 1
    assert talk.say("/undo") == ["Nothing to undo."]
    assert host.refused == []


def test_new_begins_an_empty_session(talk):
    """`/new` begins an empty session."""
    before = talk.ours.session_id
    (new,) = talk.say("/new")
    assert talk.ours.session_id != before
    assert new == f"New session {talk.ours.session_id}"
    assert talk.made.chat_history == []
    none = f"No request by this process yet in session {talk.ours.session_id}."
    assert talk.say("/status") == [none]


def test_resume_returns_to_a_session_by_its_id(talk):
    """`/resume` returns to a session."""
    before = talk.ours.session_id
    talk.say("/compact", "/new")
    assert talk.say(f"/resume {before}") == [f"Session {before}"]
    assert talk.ours.session_id == before


def test_resume_answers_an_unknown_id(talk):
    """`/resume` with an unknown id only answers that no such session exists."""
    before = talk.ours.session_id
    (unknown,) = talk.say("/resume nowhere")
    assert "nowhere" in unknown
    assert talk.ours.session_id == before
    with pytest.raises(SessionNotFound, match="nowhere"):  # only inside a chat it is an answer
        talk.ours.resume("nowhere")


def test_an_undo_counts_only_what_is_verbatim_again(host):
    """What an earlier compression replaces again is no restored message."""
    talk = Talk(agent(host, OPENAI, context(host, auto_compact=False)), "chat")
    talk.say("/compact", *map(turn, range(8, 12)))
    _, heard, undone = talk.say("/compact one", "/compact two", "/undo")
    counted = re.search(r"restored (\d+) messages .* (\d+) more stay as an earlier", undone)
    restored, still = map(int, counted.groups())
    assert restored + still == int(re.search(r"(\d+) messages summarized", heard)[1])
    assert min(restored, still) > 0


def test_choices_are_read_as_they_are_printed(host):
    """References are read with commas and without."""
    talk = Talk(agent(host, OPENAI, context(host)), "chat")
    talk.say("/compact preview")
    (kept,) = talk.say("/compact keep s1.2, s1.4")
    assert kept.count("chosen by the user") == 2
    wrong = talk.say("/compact from s1.2 to", "/compact from s1.2 s1.4", "/compact preview now")
    assert wrong[:2] == ["/compact from: expected s2.10, or s2.10 to s2.20"] * 2
    assert wrong[2] == "/compact preview takes no words. Nothing was compressed."


def test_an_undo_beyond_the_window_is_compressed_again(host):
    """Undone messages that do not fit are compressed again in the next request."""
    made = agent(host, OPENAI, context(host))
    MODES["chat"](made, [turn(n) for n in range(30)])
    undone = [*iter(lambda: MODES["chat"](made, ["/undo"])[0], "Nothing to undo.")]
    assert "more than fits: the next request is compressed again" in undone[-1]
    assert "The next request has" not in undone[-1]
    MODES["chat"](made, [turn(30)])
    assert made.context_compressor.context_status == "summarized"
    assert host.refused == []


def test_help_names_every_command(host):
    """`/help` lists what the chat answers by itself."""
    lines = agent(host, OPENAI, context(host)).chat("/help").splitlines()
    names = {line.split()[0].lstrip("/") for line in lines}
    assert names == {"status", "context", "compact", "pin", "undo", "new", "resume", "help"}
    assert host.requests == []


@pytest.mark.parametrize("name", [None, "desk"])
def test_a_bare_resume_lists_the_users_own_sessions(host, tmp_path, name):
    """`/resume` lists just the user's own sessions, newest first."""
    store = f"sqlite:///{tmp_path}/ledger.db"
    chat(agent(host, OPENAI, context(host, store_url=store, session_id="hall")), ["Good day."])
    made = agent(host, OPENAI, context(host, store_url=store, session_id=name))
    assert "No stored session" in made.chat("/resume")
    made.chat("I am at the desk.")
    first = made.context_compressor.session_id
    made.chat("/new")
    made.chat("Again at the desk.")
    second = made.context_compressor.session_id
    lines = made.chat("/resume").splitlines()[1:]
    assert [line.split()[0] for line in lines] == [second, first]
    assert made.chat(f"/resume {first}") == f"Session {first}"
    assert made.chat_history[0]["content"] == "I am at the desk."
    assert len(made.chat("/resume").splitlines()[1:]) == 2


def test_other_slashes_are_words(host):
    """Paths and unknown words go to the model, as commands to agents without us do."""
    made = agent(host, PATHS[0], context(host))
    words = ["/usr/bin is full", "/news", "/contact", "/stats please", "/status.txt"]
    chat(made, words)
    agent(host, PATHS[0], name="Bob").chat("/status")
    said = dict.fromkeys(record.messages[-1]["content"] for record in of_agent(host))
    assert list(said) == [*words, "/status"]


MEANT = {
    "compres": "compact",
    "compress": "compact",
    "Status": "status",
    "contxt": "context",
    "compat": "compact",
    "resum": "resume",
    "udno": "undo",
    "hlep": "help",
    "nw": "new",
}
MEANT_CHOICES = {"previw": "preview", "kep": "keep", "form": "from"}
WRONG = {
    **{
        typed: f"No command /{typed}; did you mean /{meant}? Nothing was sent to the model."
        for typed, meant in MEANT.items()
    },
    **{
        f"compact {typed} s1.2": f"No /compact {typed}; did you mean /compact {meant}? "
        "Nothing was compressed."
        for typed, meant in MEANT_CHOICES.items()
    },
    "undo the last edit": "/undo takes no words. Nothing was done, or sent to the model.",
}


def test_a_wrong_command_is_answered_with_the_right_one_and_does_nothing(host):
    """A misspelled command or choice, or words that a command does not take, change nothing."""
    made = talked(host)
    made.chat("/compact")
    sent, before = len(host.requests), made.context_compressor.last_result
    for typed, answer in WRONG.items():
        assert made.chat(f"/{typed}") == answer
    assert made.context_compressor.last_result is before
    assert made.context_compressor.context_status == "summarized"
    assert len(host.requests) == sent


def test_status_and_undo_count_what_is_sent_next(host):
    """`/undo` and `/status` count the messages that the next request has."""
    host.answer_with(lambda asked: f"Noted as {asked.number}. " * 12)
    made = agent(host, OPENAI, context(host))
    chat(made, [turn(n) for n in range(8)])
    made.chat("/compact")
    assert re.match(r"Next request: .*summary [1-9].*\(summarized\)", made.chat("/status"))
    del made.chat_history[4:6]
    answer, status = made.chat("/undo"), made.chat("/status")
    assert re.match(r"Next request: .*summary 0.*\(full\)", status)
    sizes = re.findall(r"[nN]ext request(?: has|:) ([\d.]+k)", answer + status)
    assert sizes[0] == sizes[1]
    made.chat("Go on.")
    assert re.match(r"Last request: .*summary 0.*\(full\)", made.chat("/status"))
    back = [turn(n) for n in range(8) if n != 2]
    assert texts_in(of_agent(host)[-1], "user") == [*back, "Go on."]
    assert " 2 more are no longer in the conversation." in answer


def test_pinned_texts_outlive_compressions_and_are_listed(host):
    """Each view and the status have the pinned texts word for word."""
    pins = ("Write British English.", "Never deploy on Fridays.")
    made = agent(host, OPENAI, context(host, pinned=pins[:1]))
    events: list[str] = []
    made.context_compressor.subscribe(lambda event: events.append(event.name))
    made.chat(f"/pin {pins[1]}")
    chat(made, [turn(n) for n in range(30)])
    status = made.context_compressor.status()
    assert events.count("committed") > 1
    sent = "\n".join(map(text_of, of_agent(host)[-1].messages))
    assert [sent.count(text) for text in pins] == [1, 1]
    assert status.pinned == pins
    assert made.chat("/status").splitlines()[-2:] == [f"Pinned: {text}" for text in pins]


@pytest.mark.parametrize("mode", ["iter_stream", "achat"])
def test_the_context_is_shown_by_part(host, mode):
    """`/context` prints the parts of the next request and its largest messages."""
    host.answer_with(Worker(1, parallel=2, tool="look_up", arguments=numbered, answer="Noted."))
    made = agent(host, OPENAI, context(host, recall=False), tools=[look_up])
    MODES["iter_stream"](made, [turn(n) for n in range(16)])
    use = made.context_compressor.context_use()
    (heard,) = MODES[mode](made, ["/context"])
    lines = dict(re.findall(r"^([a-z ]{14}) +(-?[\d.]+k?)", heard, re.M))
    assert [name.rstrip() for name in lines] == list(use.parts)
    assert heard.startswith(f"{use.used / 1000:.1f}k of 6.0k (")
    assert use.messages["summaries"] > 0
    assert re.search(r"^\[\d+\] +\d+  tool look_up$", heard, re.M)
    MODES["iter_stream"](made, [turn(16)])
    counted = made.context_compressor.for_model().tokens.message(
        {"role": "user", "content": turn(16)}
    )
    asked = next(r for r in of_agent(host) if turn(16) == r.messages[-1]["content"])
    assert asked.prompt_tokens == use.used + counted


def test_the_context_and_the_status_count_the_same_tool_schemas(host):
    """`/context` and `/status` have one count of the tool schemas of the same request."""
    compressor = talked(host).context_compressor
    use, status = compressor.context_use(), compressor.status()
    assert use.parts["tool schemas"] == status.tool_tokens > 0


@pytest.mark.parametrize("mode", ["chat", "achat"])
def test_compacting_by_masks_alone_is_reported(host, mode):
    """`/compact` by masks alone reports the masked outputs."""

    def read_page(topic: str, part: int) -> str:
        """Read a page.

        Args:
            topic: of what
            part: which
        """
        return look_up(topic, part) + WORDS * 50

    host.set_window(100_000)
    host.answer_with(Worker(2, parallel=3, tool="read_page", arguments=numbered, answer="Noted."))
    made = agent(host, OPENAI, context(host, context_window=20_000), tools=[read_page])
    MODES["iter_stream"](made, [turn(n) for n in range(3)])
    host.answer_with(Worker(answer="Noted."))
    MODES["iter_stream"](made, [turn(3)])
    (heard,) = MODES[mode](made, ["/compact"])
    assert re.match(
        r"Compressed the conversation: [\d.]+k → [\d.]+k \(system [1-9]\d+, summary 0,", heard
    )
    assert re.search(r"\n[1-9]\d* outputs masked; [1-9]\d* messages kept verbatim\.", heard)
    assert made.context_compressor.context_status == "masked"
    assert made.context_compressor.last_result.newly_masked > 0
    assert host.for_model("aux") == []
