"""Steps that the host drops come back; messages that the user removed do not."""

import random
from collections.abc import Sequence

import pytest

from praison_compressor.messages import Message
from praison_compressor.messages.digests import MessageCache
from praison_compressor.messages.dropped_steps import (
    LEAST_BOUND_MESSAGES,
    CarriedHistory,
    add_answer,
    complete_request,
    drop_work,
    history_from,
)
from tests.helpers import transcripts
from tests.helpers.transcripts import said, user

SYSTEM = {"role": "system", "content": "You keep the books."}


def step(name: str, id: str = "") -> list[Message]:
    """Return a call and its result."""
    return transcripts.step(id or f"call-{name}", f"result {name}", "look", at=name)


class Host:
    """A host that keeps questions and answers."""

    def __init__(self, most: int = 0) -> None:
        self.history: list[Message] = []
        self.carried = CarriedHistory()
        self.sent: list[list[Message]] = []
        self.most = most
        self._cache = MessageCache()
        self._turn = 0

    def send(self, given: Sequence[Message], bound: int = 0) -> list[Message]:
        """Return the messages that go out for a request of the running turn."""
        found = complete_request(
            self.carried, [SYSTEM, *given], self._cache, turn=self._turn, bound=bound
        )
        self.carried = found.carried
        self.sent.append(found.messages)
        return found.messages[1:]

    def turn(
        self,
        question: str,
        *steps: Sequence[Message],
        answer: str | None = None,
        bound: int = 0,
        is_watched: bool = True,
    ) -> list[Message]:
        """Run a turn with its steps; return its first request."""
        self._turn += 1
        running = [*self.history, user(question)]
        first = self.send(running, bound)
        for each in steps:
            running = [*running, *each]
            self.send(running, bound)
        self.history.append(user(question))
        if answer is not None:
            self.history.append(said(answer))
        if is_watched:
            self.carried = add_answer(self.carried, self.history, self._cache)
        self.history = self.history[-self.most :]
        return first


# -------------------------------------------------------------- steps


@pytest.mark.parametrize("most", [0, 40])
def test_what_is_sent_is_what_is_carried(most):
    """The messages of a request are those carried to the next one."""
    host = Host(most)
    for number in range(30):
        host.turn(f"q{number}", step(str(number)), answer=f"a{number}", is_watched=False)
        assert host.sent[-1][1:] == host.carried.messages


@pytest.mark.parametrize("is_watched", [True, False])
def test_steps_come_back_between_question_and_answer(is_watched):
    """The next turn's first request begins with the last request of the turn before."""
    host = Host()
    for number in range(4):
        steps = [step(f"{number}.{n}") for n in range(3)]
        first = host.turn(f"q{number}", *steps, answer=f"a{number}", is_watched=is_watched)
        last = host.sent[-5] if number else []
        assert first[: len(last) - 1] == last[1:]
    final = host.turn("end")
    assert final[:9] == [
        user("q0"),
        *step("0.0"),
        *step("0.1"),
        *step("0.2"),
        said("a0"),
        user("q1"),
    ]
    assert sum("tool_calls" in message for message in final) == 12


def test_equal_ids_and_equal_words_stay_in_their_turns():
    """Steps with repeated ids and words come back in their own turns."""
    host = Host()
    for number in range(3):
        host.turn("go on", step(str(number), id="call-1"), answer="Done.")
    results = [m["content"] for m in host.turn("end") if m["role"] == "tool"]
    assert results == ["result 0", "result 1", "result 2"]


def test_words_between_two_steps_stay_with_them():
    """A note or picture between two steps comes back with the steps."""
    host = Host()
    note = user("[steering] hurry")
    host.turn("q0", step("0"), [note, *step("1")], answer="a0")
    assert host.turn("q1")[:-1] == [user("q0"), *step("0"), note, *step("1"), said("a0")]


def test_words_after_the_last_result_are_no_work():
    """An assistant's words after the last result do not come back."""
    host = Host()
    host.turn("q0", step("0"), [said("draft"), user("Reflect.")], answer="a0")
    assert host.turn("q1") == [user("q0"), *step("0"), said("a0"), user("q1")]


def test_a_host_that_keeps_its_steps_gets_none_twice():
    """Calls and results that the history still has are not added again."""
    host = Host()
    host.turn("q0", step("0"), answer="a0")
    host.history[1:1] = step("0")
    assert host.turn("q1") == [user("q0"), *step("0"), said("a0"), user("q1")]
    host.history[1:3] = step("other")
    assert host.turn("q2")[:4] == [user("q0"), *step("other"), said("a0")]


def test_a_host_that_keeps_a_part_of_the_steps_gets_the_others():
    """Steps that the host kept stand where they stood."""
    host = Host()
    host.turn("q0", step("0"), step("1"), answer="a0")
    host.history[1:1] = step("1")
    assert host.turn("q1")[:-1] == [user("q0"), *step("0"), *step("1"), said("a0")]


def test_a_question_recorded_differently_keeps_its_steps():
    """A host may send a question with more around it than it records."""
    host = Host()
    host._turn = 1
    asked = [user("q0\n\nContext: a page"), *step("0")]
    host.send(asked[:1])
    host.send(asked)
    host.history = [user("q0"), said("a0")]
    host.carried = add_answer(host.carried, host.history, host._cache)
    assert host.turn("q1") == [user("q0"), *step("0"), said("a0"), user("q1")]


def test_a_recorded_transcript_gives_the_steps_back():
    """A recorded transcript gives the steps back after a restart."""
    host = Host()
    for number in range(3):
        host.turn(f"q{number}", step(str(number)), answer=f"a{number}")
    before = host.turn("end")
    host.history.pop()
    host.carried = history_from([SYSTEM, *host.carried.messages], host._cache)
    assert host.turn("end") == before


def test_steps_of_another_model_are_named():
    """Unchanged steps of another model than the request's are named."""
    cache = MessageCache()
    call = {**step("0")[0], "thinking_blocks": [{"type": "thinking", "signature": "s"}]}
    running = [user("q0"), call, step("0")[1]]
    carried = complete_request(CarriedHistory(), running, cache, turn=1, model="a").carried
    given = [user("q0"), said("a0"), user("q1")]
    same = complete_request(carried, given, cache, turn=2, model="a")
    assert same.messages == [given[0], call, step("0")[1], *given[1:]]
    assert (len(same.restored), same.foreign) == (2, [])
    other = complete_request(same.carried, given, cache, turn=2, model="b")
    assert other.messages == same.messages
    assert other.foreign == other.restored == [call, step("0")[1]]


# -------------------------------------------------------------- what the user took back


def three_turns() -> Host:
    host = Host()
    for number in range(3):
        host.turn(f"q{number}", step(str(number)), answer=f"a{number}")
    return host


def results(messages: Sequence[Message]) -> list[str]:
    return [m["content"].removeprefix("result ") for m in messages if m["role"] == "tool"]


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        (slice(0, 2), ["1", "2"]),
        (slice(2, 4), ["0", "2"]),
        (slice(4, 6), ["0", "1"]),
        (slice(2, 3), ["0", "2"]),
        (slice(3, 4), ["0", "2"]),
        (slice(5, 6), ["0", "1"]),
        (slice(0, 6), []),
    ],
)
def test_steps_go_with_their_question_or_answer(gone, left):
    """An exchange, a question or an answer that is deleted takes its steps with it, for good."""
    host = three_turns()
    del host.history[gone]
    assert results(host.turn("next", answer="a3")) == left
    assert results(host.turn("end")) == left


def test_a_retry_begins_without_the_steps_of_the_try_before():
    """A retried question is sent without the steps of the try before."""
    host = three_turns()
    del host.history[4:]
    assert results(host.turn("q2", answer="other")) == ["0", "1"]


# -------------------------------------------------------------- a dropped front


def growing(host: Host, turns: int, *, bound: int = 0, first: int = 0) -> list[list[Message]]:
    """Return the first requests of turns with one step each."""
    return [
        host.turn(f"q{n}", step(str(n)), answer=f"a{n}", bound=bound)
        for n in range(first, first + turns)
    ]


@pytest.mark.parametrize("most", [LEAST_BOUND_MESSAGES, LEAST_BOUND_MESSAGES + 1, 40, 41])
def test_a_front_that_slides_comes_back(most):
    """After a host's third cut at one length, the front and its steps come back."""
    host, whole = Host(most), Host()
    cut, uncut = growing(host, 60), growing(whole, 60)
    differing = [n for n, (a, b) in enumerate(zip(cut, uncut, strict=True)) if a != b]
    assert differing == [most // 2 + 1, most // 2 + 2]


@pytest.mark.parametrize("most", [40, 41])
def test_a_host_that_names_its_bound_loses_nothing(most):
    """With a known bound the first cut is no deletion."""
    host, whole = Host(most), Host()
    assert growing(host, 60, bound=most) == growing(whole, 60)


@pytest.mark.parametrize("most", [40, 41])
def test_a_restart_at_the_first_cut_loses_no_front(most):
    """Before the bound is known, messages that may have slid out are recorded."""
    host = Host(most)
    growing(host, most // 2 + 2)
    record = [seen.plain for seen in host.carried.record]
    assert record[0] == user("q0")
    host.carried = history_from(record, host._cache)
    growing(host, 3, first=most // 2 + 2)
    whole = Host()
    growing(whole, most // 2 + 5)
    assert host.carried.messages == whole.carried.messages


@pytest.mark.parametrize("times", [1, 2])
def test_a_deleted_front_stays_away(times):
    """A front that the user deletes stays away, also in two turns running."""
    host = Host()
    growing(host, 30)
    for n in range(30, 30 + times):
        del host.history[:2]
        growing(host, 1, first=n)
    later = growing(host, 8, first=32)
    gone = [user(f"q{n}") for n in range(times)]
    assert not [request for request in later if any(each in request for each in gone)]


def test_a_deletion_from_a_bounded_list_stays_deleted():
    """A message deleted from a list below the bound stays deleted."""
    host = Host(40)
    growing(host, 40, bound=40)
    del host.history[:2]
    (request,) = growing(host, 1, bound=40, first=40)
    assert user("q20") not in request
    assert request[:1] == [user("q0")]
    assert all(user("q20") not in each for each in growing(host, 9, bound=40, first=41))


def test_a_summary_of_the_host_takes_the_place_of_a_front():
    """Only messages that the host left uncompacted get their steps back."""
    host = three_turns()
    host.history[:4] = [user("[Summary of the conversation so far] …")]
    request = host.turn("end")
    assert request[0]["content"].startswith("[Summary")
    assert results(request) == ["2"]


def test_a_cleared_list_begins_with_nothing():
    """A cleared list begins a conversation with nothing of the old one."""
    host = Host(40)
    growing(host, 40, bound=40)
    host.history.clear()
    assert host.turn("hello") == [user("hello")]


# -------------------------------------------------------------- edits at random


@pytest.mark.parametrize("seed", range(5))
def test_no_step_is_sent_whose_question_or_answer_is_gone(seed):
    """Through 60 random edits no step of a missing question or answer is sent, the others are."""
    chosen = random.Random(seed)
    host, worked = Host(), set[int]()
    for number in range(60):
        steps = [step(f"{number}/{n}", id=f"call-{n}") for n in range(chosen.randrange(4))]
        worked |= {number} if steps else set()
        host.turn(f"q{number}", *steps, answer=f"a{number}")
        _edit(host.history, chosen)
        there = {m["content"] for m in host.history}
        request = host.turn("next?", answer="next.")
        del host.history[-2:]
        asked = {name.partition("/")[0] for name in results(request)}
        kept = {n for n in range(number + 1) if {f"q{n}", f"a{n}"} <= there}
        assert {int(name) for name in asked} == kept & worked
        assert [m for m in request if m["role"] == "user"][-1] == user("next?")


def _edit(history: list[Message], chosen: random.Random) -> None:
    place = chosen.randrange(len(history))
    kind = chosen.randrange(5)
    if kind == 0:
        del history[place]
    elif kind == 1:
        history[place] = {**history[place], "content": history[place]["content"] + " (edited)"}
    elif kind == 2:
        start = place - place % 2
        del history[start : start + 2]
    elif kind == 3:
        del history[: 2 * chosen.randrange(2)]


def test_the_steps_of_a_failed_turn_stay_away():
    """A failed turn's steps are not sent, though the host keeps its question."""
    cache = MessageCache()
    sent = complete_request(CarriedHistory(), [SYSTEM, user("q0"), *step("a")], cache, turn=1)
    given = [SYSTEM, user("q0"), user("q1")]
    assert complete_request(sent.carried, given, cache, turn=2).messages != given
    assert complete_request(drop_work(sent.carried), given, cache, turn=2).messages == given
