"""One agent serves many people, and nobody's words reach another."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from praisonai_bot.bots._session import BotSessionManager
from praisonaiagents.session import DefaultSessionStore

from praison_compressor import open_store
from praison_compressor.messages.digests import MessageCache
from praison_compressor.praisonai.conversations import (
    MOST_DIGESTS,
    Conversation,
    Conversations,
)
from praison_compressor.recall.answers import READ, SEARCH
from praison_compressor.testing import Asked, Call, LocalProvider, Reply
from tests.helpers.hosting import (
    ANTHROPIC,
    LITELLM,
    OPENAI,
    RESPONSES,
    agent,
    chat,
    context,
    look_up,
    of_agent,
    texts_in,
    turn,
)
from tests.helpers.transcripts import said, user

SECRET = "MAGENTA-HERON-77"
HINT = f"My bank PIN hint is {SECRET}, keep it for me"
ASKED = "What was the hint?"


def searching(asked: Asked) -> Any:
    """Answer each message in words of its own; search the archive when asked for the hint."""
    may = SEARCH in [tool["function"]["name"] for tool in asked.tools]
    if ASKED in asked.last_user and may and asked.messages[-1].get("role") != "tool":
        return Reply(calls=(Call(SEARCH, {"query": SECRET}),))
    return f"Noted as number {asked.number}, and kept for later. " + "Noted. " * 10


def reading(asked: Asked) -> Any:
    """Answer as `searching` does, but read the outlines of the archive."""
    answer = searching(asked)
    if isinstance(answer, Reply):
        return Reply(calls=(Call(READ, {"reference": "s1, s2, s3, s4"}),))
    return answer


def answers_of_search(provider: LocalProvider) -> list[str]:
    """Return what the model was handed by the archive."""
    return list(dict.fromkeys(text for r in of_agent(provider) for text in texts_in(r, "tool")))


Say = Callable[[str, str], object]
"""Sends one person's words to the agent; may return the answer."""


def through_bot(made: Any) -> Say:
    """Return a sender through the host's own session manager."""
    manager = BotSessionManager(platform="telegram")
    return lambda person, words: asyncio.run(manager.chat(made, person, words))


def by_swapping(made: Any) -> Say:
    """Return a sender that swaps the agent's history itself, and names nobody."""
    histories: dict[str, list[Any]] = {}

    def say(person: str, words: str) -> None:
        made.chat_history = list(histories.get(person, []))
        made.chat(words)
        histories[person], made.chat_history = list(made.chat_history), []

    return say


SENDERS = {"bot": through_bot, "swapped": by_swapping}


@pytest.mark.parametrize(
    ("path", "sender", "background"),
    [
        *((OPENAI, "bot", False), (OPENAI, "swapped", True)),
        *((LITELLM, "bot", True), (RESPONSES, "swapped", False), (ANTHROPIC, "bot", False)),
    ],
)
def test_interleaved_people_keep_their_own_archives(host, path, sender, background):
    """Each of four people who take turns with one agent finds only one's own hint."""
    host.answer_with(searching)
    made = agent(host, path, context(host, background=background), tools=[look_up])
    say, people = SENDERS[sender](made), ("ann", "ben", "cid", "dot")
    for person in people:
        say(person, "Good morning.")
        say(person, HINT.replace(SECRET, f"{SECRET} of {person.upper()}-OWN"))
    for n in range(14):
        for person in people:
            say(person, turn(n) + person)
        made.context_compressor.for_model().wait_for_summaries(20)
    for person in people:
        say(person, ASKED)
    found = answers_of_search(host)
    whose = [[p for p in people if f"{p.upper()}-OWN" in said] for said in found]
    assert whose == [["ann"], ["ben"], ["cid"], ["dot"]]


LONG = 73
"""Words of a message; five such messages outgrow the window."""


def outgrowing(first: int) -> list[str]:
    """Return messages that outgrow the window."""
    return [turn(n, words=LONG) for n in range(first, first + 6)]


def nothing_found(provider: LocalProvider) -> list[bool]:
    """Return for each search whether it found nothing."""
    return ["Nothing" in said for said in answers_of_search(provider)]


@pytest.mark.parametrize("first", ["hi", turn(0, words=LONG)], ids=["short", "page"])
def test_two_people_who_begin_alike_stay_two(host, first):
    """Of two people with the same first words, each finds one's own hint only."""
    host.answer_with(lambda asked: searching(asked) if ASKED in asked.last_user else "Noted.")
    made = agent(host, OPENAI, context(host), tools=[look_up])
    say = by_swapping(made)
    for person in ("ann", "ben"):
        say(person, first)
    for person in ("ann", "ben"):
        say(person, HINT.replace(SECRET, f"{SECRET} of {person.upper()}-OWN"))
    for words in outgrowing(1):
        say("ann", words + "ann")
        say("ben", words + "ben")
        say("ann", "yes, go on")
        say("ben", "yes, go on")
    say("ann", ASKED)
    say("ben", ASKED)
    to_ann, to_ben = answers_of_search(host)
    assert ("ANN-OWN" in to_ann, "BEN-OWN" in to_ann) == (True, False)
    assert ("ANN-OWN" in to_ben, "BEN-OWN" in to_ben) == (False, True)


def test_a_history_copied_for_each_person_leads_to_nobody_else(host):
    """People whose histories begin with one introduction find none of each other's words."""
    host.answer_with(searching)
    made = agent(host, OPENAI, context(host), tools=[look_up])
    made.chat("Introduce yourself to the people who will talk to you from now on.")
    begun = list(made.chat_history)
    made.chat_history = list(begun)
    chat(made, (HINT, *outgrowing(0)))
    made.chat_history = list(begun)
    chat(made, (*outgrowing(20), ASKED))
    assert nothing_found(host) == [True]


def test_a_first_question_identifies_nobody(host):
    """A history that begins with another person's first question has a session of its own."""
    host.answer_with(searching)
    made = agent(host, OPENAI, context(host), tools=[look_up])
    chat(made, (turn(0), HINT))
    session_id = made.context_compressor.status().session_id
    made.chat_history = [user(turn(0)), said("Welcome.")]
    made.chat("And now?")
    assert made.context_compressor.status().session_id != session_id


def test_messages_that_an_edit_dropped_are_not_found(host):
    """After an edit the same session hides the dropped messages from recall."""
    host.answer_with(searching)
    made = agent(host, OPENAI, context(host), tools=[look_up])
    made.chat("Good morning, these are the ledgers that I wrote to you about.")
    chat(made, outgrowing(0))
    kept, session = list(made.chat_history), made.context_compressor.session_id
    chat(made, (HINT, *outgrowing(10)))
    assert made.context_compressor.session_id == session
    made.chat_history = kept
    chat(made, (*outgrowing(20), ASKED))
    assert made.context_compressor.session_id == session
    assert nothing_found(host) == [True]


def test_messages_that_an_edit_dropped_are_not_read(host):
    """After an edit a segment with a dropped message reads as forgotten."""
    host.answer_with(reading)
    made = agent(host, OPENAI, context(host), tools=[look_up])
    chat(made, ("Good morning.", *outgrowing(0)))
    kept = list(made.chat_history)
    chat(made, (HINT, *outgrowing(10)))
    made.chat_history = kept
    chat(made, (*outgrowing(20), ASKED))
    (read,) = answers_of_search(host)
    assert "was forgotten" in read
    assert turn(0)[:30] in read
    assert SECRET not in read


BEGIN: dict[str, Callable[[Any], object]] = {
    "cleared": lambda made: made.clear_history(),
    "new": lambda made: made.chat("/new"),
}


@pytest.mark.parametrize("begin", BEGIN)
@pytest.mark.parametrize("session", [None, "desk"])
def test_a_conversation_begun_again_is_empty(host, begin, session):
    """A cleared or new conversation has nothing of the conversation before."""
    host.answer_with(searching)
    memory = {"session_id": session} if session else None
    made = agent(host, OPENAI, context(host), tools=[look_up], memory=memory)
    chat(made, ("Good morning.", HINT, *outgrowing(0)))
    ours = made.context_compressor
    before, said = ours.session_id, ours.context_status
    BEGIN[begin](made)
    assert (said, ours.context_status) == ("summarized", "full")
    assert ours.last_result is None
    chat(made, (*outgrowing(20), ASKED))
    assert ours.session_id != before
    assert nothing_found(host) == [True]


def test_a_recall_tool_outside_any_turn_reads_nothing(host):
    """A recall tool called outside any turn answers only why it reads nothing."""
    made = agent(host, OPENAI, context(host), tools=[look_up])
    chat(made, outgrowing(0))
    search = next(tool for tool in made.tools if tool.__name__ == SEARCH)
    assert "not known whose conversation" in search(query="ledger")


def test_a_bot_goes_on_after_a_restart_with_what_was_not_reset(host, tmp_path):
    """A restarted bot goes on with exactly the conversation since the last reset."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    store = DefaultSessionStore(session_dir=str(tmp_path / "sessions"))

    def started() -> tuple[Any, BotSessionManager]:
        made = agent(host, OPENAI, context(host, store_url=url), tools=[look_up])
        return made, BotSessionManager(platform="telegram", store=store)

    def say(words: str) -> str:
        asyncio.run(manager.chat(made, "ann", words))
        return asyncio.run(manager.chat(made, "ann", "/status"))

    made, manager = started()
    for first in (0, 20):
        manager.reset("ann")
        for words in outgrowing(first):
            say(words)
        calls = len(host.for_model("aux"))
        made, manager = started()
        assert "(summarized)" in say("And the next one?")
        assert len(host.for_model("aux")) == calls
    assert len(open_store(url).sessions("default")) == 2


def test_nobody_resumes_another_persons_session(host):
    """A bot's person who types `/resume` with the session of somebody else is refused."""
    made = agent(host, OPENAI, context(host), tools=[look_up])
    say = through_bot(made)
    for words in outgrowing(0):
        say("ann", words)
    say("ben", "hi")
    assert "Session bot_telegram_ann" in say("ann", "/resume bot_telegram_ann")
    assert say("ben", "/resume bot_telegram_ann").startswith("no session bot_telegram_ann")


def test_a_conversation_ends_with_its_agent(host):
    """Of an agent that is gone no conversation stays in memory."""
    made = agent(host, OPENAI, context(host), tools=[look_up])
    chat(made, [turn(0), turn(1)])
    left = weakref.ref(made.context_compressor.conversation)
    assert left() is not None
    del made
    gc.collect()
    assert left() is None


def test_a_compressor_has_its_conversation_without_its_agent(host):
    """The compressor of an agent that is gone has the agent's last conversation."""
    made = agent(host, OPENAI, context(host))
    chat(made, [turn(0), turn(1)])
    ours, own = made.context_compressor, made.context_compressor.session_id
    del made
    gc.collect()
    assert (ours.session_id, ours.status().session_id) == (own, own)
    assert ours.compress(focus="L-000").session_id.startswith(own)


def test_a_long_conversation_remembers_its_newest_messages():
    """Of the digests of messages sent, the newest MOST_DIGESTS stay in memory."""
    conversation = Conversation("s")
    for number in range(MOST_DIGESTS + 2):
        conversation.add_sent([f"{number}"], 0)
    assert [*conversation.first_sent] == [f"{number}" for number in range(2, MOST_DIGESTS + 2)]


def test_a_message_of_two_conversations_identifies_neither():
    """Only a long message that no other conversation sent or received identifies one."""
    own, page, shared = MessageCache().all([user(words * 9) for words in (HINT, ASKED, SECRET)])
    conversations = Conversations()
    ann, ben = (conversations.remember(Conversation(person)) for person in ("ann", "ben"))
    ann.identify_by([own, page, shared])
    ben.identify_by([shared])
    ben.add_sent([page.digest], 0)
    before = [message.digest for message in (own, page, shared)]
    assert [conversations.count_hits(person, before) for person in (ann, ben)] == [1, 0]
