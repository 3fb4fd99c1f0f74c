"""One agent serves many people, and nobody's words reach another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from praisonai_bot.bots._session import BotSessionManager

from praison_compressor.ledger.recall import SEARCH
from praison_compressor.testing import Asked, Call, LocalProvider, Reply
from tests.helpers.hosting import EVERY_PATH, OPENAI, agent, context, look_up, of_agent, turn

SECRET = "MAGENTA-HERON-77"
HINT = f"My bank PIN hint is {SECRET}, keep it for me"
ASKED = "What was the hint?"


def searching(asked: Asked) -> Any:
    """Answer each message in words of its own; search the archive when asked for the hint."""
    may = SEARCH in [tool["function"]["name"] for tool in asked.tools]
    if ASKED in asked.last_user and may and asked.messages[-1].get("role") != "tool":
        return Reply(calls=(Call(SEARCH, {"query": SECRET}),))
    return f"Noted as number {asked.number}, and kept for later. " + "Noted. " * 10


def answers_of_search(provider: LocalProvider) -> list[str]:
    """Return what the model was handed by the archive."""
    sent = (m for r in of_agent(provider) for m in r.messages if m.get("role") == "tool")
    return list(dict.fromkeys(str(m["content"]) for m in sent))


Say = Callable[[str, str], None]
"""Sends one person's words to the agent."""


def through_bot(made: Any, **options: Any) -> Say:
    """Return a sender through the host's own session manager."""
    manager = BotSessionManager(platform="telegram", **options)
    return lambda person, words: asyncio.run(manager.chat(made, person, words)) and None


def by_swapping(made: Any) -> Say:
    """Return a sender that swaps the agent's history itself, and names nobody."""
    histories: dict[str, list[Any]] = {}

    def say(person: str, words: str) -> None:
        made.chat_history = list(histories.get(person, []))
        made.chat(words)
        histories[person], made.chat_history = list(made.chat_history), []

    return say


SENDERS = {"bot": through_bot, "swapped": by_swapping}


@pytest.mark.parametrize("path", EVERY_PATH)
@pytest.mark.parametrize("sender", SENDERS)
def test_recall_reads_nothing_of_another_person(
    host: LocalProvider, sender: str, path: str
) -> None:
    """Two people talk to one agent one after the other: a search finds only one's own words."""
    host.answer_with(searching)
    made = agent(host, path, context(host), tools=[look_up])
    say = SENDERS[sender](made)
    for n in range(14):
        say("ann", turn(n))
    say("ben", turn(19))  # a first exchange stays in the view
    say("ben", HINT)
    for n in range(20, 34):
        say("ben", turn(n))
    say("ann", ASKED)
    say("ben", ASKED)
    to_ann, to_ben = answers_of_search(host)
    assert "Nothing archived of this conversation matches" in to_ann
    assert SECRET in to_ben
    assert "from earlier in this conversation" in to_ben


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("sender", SENDERS)
def test_interleaved_people_keep_their_own_archives(
    host: LocalProvider, sender: str, background: bool
) -> None:
    """Four people take turns with one agent: each finds one's own hint, and no other's."""
    host.answer_with(searching)
    made = agent(host, OPENAI, context(host, background=background), tools=[look_up])
    say, people = SENDERS[sender](made), ("ann", "ben", "cid", "dot")
    for person in people:
        say(person, "Good morning.")
        say(person, HINT.replace(SECRET, f"{SECRET} of {person.upper()}-OWN"))
    for n in range(14):
        for person in people:
            say(person, turn(n) + person)
        made.context_compressor.engine().background.wait(20)
    for person in people:
        say(person, ASKED)
    found = answers_of_search(host)
    whose = [[p for p in people if f"{p.upper()}-OWN" in said] for said in found]
    assert whose == [["ann"], ["ben"], ["cid"], ["dot"]]


@pytest.mark.parametrize("path", EVERY_PATH)
def test_what_was_reset_is_not_found_again(host: LocalProvider, path: str) -> None:
    """After the bot's `/new` the same person begins with an empty archive."""
    host.answer_with(searching)
    made = agent(host, path, context(host), tools=[look_up])
    manager = BotSessionManager(platform="telegram")

    def say(words: str) -> None:
        asyncio.run(manager.chat(made, "ann", words))

    say("Good morning.")
    say(HINT)
    for n in range(14):
        say(turn(n))
    manager.reset("ann")
    for n in range(40, 54):
        say(turn(n))
    say(ASKED)
    assert "Nothing archived of this conversation matches" in answers_of_search(host)[0]
