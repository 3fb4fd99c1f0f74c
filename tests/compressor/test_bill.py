"""The bill has what a session cost, and what the requests had cost without us."""

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from praison_compressor import (
    Balance,
    ConfigError,
    ContextCompressor,
    MemoryStore,
    StoreUnavailable,
    open_store,
)
from praison_compressor.compressor.account import Account
from praison_compressor.compressor.billing import uncompressed_usage
from praison_compressor.compressor.bills import Bill, RequestUsage, read_whole_usage
from praison_compressor.compressor.session_states import REMEMBERED_SESSIONS, SessionStates
from praison_compressor.ledger.segments import Session
from praison_compressor.messages.display import format_dollars
from tests.helpers import compressing
from tests.helpers.compressing import PAID, SMALL, paid
from tests.helpers.transcripts import coding_turns


def usage(prompt: int, cached: int = 0) -> dict[str, Any]:
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": 100, **details}}


class Observed(MemoryStore):
    """A store that calls `seen` before it writes a note."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Callable[[], object] = lambda: None

    def change_note(self, session: Session, change: Callable[[str], str]) -> str:
        self.seen()
        return super().change_note(session, change)


def test_a_bill_is_whole_while_it_is_written():
    """The bill includes amounts being written to the store, so it never decreases."""
    store, bills = Observed(), list[Bill]()
    ours = ContextCompressor(SMALL, store=store)
    question = [{"role": "user", "content": "Go on."}]
    store.seen = lambda: bills.append(ours.compress_sync(question, session_id="s").bill)
    for number in range(1, 4):
        assert ours.record_usage(usage(1_000), session_id="s").requests == number
    assert [bill.requests for bill in bills] == sorted(bill.requests for bill in bills)
    assert bills[-1].requests == ours.bill("s").requests == 3


@pytest.fixture
def priced():
    """Return a compressor for gpt-4o whose model writes the summaries."""
    return compressing.compressor(paid, tool_policies={"*": "summarize"})


@pytest.fixture
def billed(priced):
    """Return two results of the session "s", and its bill after their requests."""
    first = priced.compress_sync(coding_turns(4), session_id="s")
    priced.record_usage(usage(first.tokens_after), session_id="s")
    second = priced.compress_sync(coding_turns(20), session_id="s")
    return first, second, priced.record_usage(usage(second.tokens_after, 1_000), session_id="s")


def test_a_bill_adds_requests_and_summaries(billed):
    """A bill adds the usage of requests and summaries, and prices them."""
    first, second, bill = billed
    assert (bill.requests, bill.summaries) == (2, PAID)
    assert bill.usage == RequestUsage(first.tokens_after + second.tokens_after, 1_000, 0, 0, 200)
    plain = bill.usage.prompt_tokens - 1_000
    assert bill.cost == pytest.approx(plain * 2.5e-6 + 1_000 * 1.25e-6 + 200 * 1e-5)
    assert bill.total == pytest.approx(bill.cost + 0.5)


def test_a_bill_has_the_cost_without_compression(billed):
    """A bill has the tokens that the same requests take with the whole transcript."""
    first, second, bill = billed
    assert bill.without.prompt_tokens == first.tokens_before + second.tokens_before
    assert bill.without.cache_read_tokens == first.tokens_before
    assert "Without praison_compressor: " in str(bill)


def test_each_session_has_a_bill_of_its_own(priced, billed):
    """A later result has its own session's bill, unchanged by another session."""
    assert priced.compress_sync(coding_turns(4), session_id="other").bill.requests == 0
    assert priced.compress_sync(coding_turns(20), session_id="s").bill == billed[2]


def test_a_model_without_a_price_has_a_bill_in_tokens():
    """A model without a price in litellm's table has a bill in tokens alone."""
    ours = compressing.compressor(model="unlisted-1")
    ours.compress_sync(coding_turns(2), session_id="s")
    bill = ours.record_usage(usage(900), session_id="s")
    assert (bill.usage.prompt_tokens, bill.cost, bill.total) == (900, None, None)
    assert ours.record_usage(None, session_id="s") == bill


@pytest.mark.parametrize(
    "answer", [None, (), {"usage": None}, {"choices": []}, SimpleNamespace(output=[])]
)
def test_an_answer_without_usage_leaves_the_bill_as_it_is(answer):
    """A stream's piece, or a provider that reports no usage, changes no bill and ends no loop."""
    ours = compressing.compressor()
    bill = ours.record_usage(usage(900), session_id="s")
    assert ours.record_usage(answer, session_id="s") == bill


@pytest.mark.parametrize(
    "answer", [5, "usage", True, {"foo": 1}, {}, [usage(900)], ("a", 5), object()]
)
def test_a_value_that_is_no_answer_is_refused(answer):
    """A value that is neither an answer nor a usage is refused and leaves the bill unchanged."""
    ours = compressing.compressor()
    bill = ours.record_usage(usage(900), session_id="s")
    with pytest.raises(ConfigError, match=r"^answer is \w+; expected a provider's response"):
        ours.record_usage(answer, session_id="s")
    assert ours.bill("s") == bill


CHAT = {"prompt_tokens": 9, "completion_tokens": 2}
ITEMS = {"input_tokens": 9, "output_tokens": 2}
CACHED = {"cache_read_input_tokens": 40, "cache_creation_input_tokens": 30}
HOUR = {"cache_creation": {"ephemeral_1h_input_tokens": 10}}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (CHAT, RequestUsage(9, 0, 0, 0, 2)),
        (SimpleNamespace(usage=SimpleNamespace(**CHAT)), RequestUsage(9, 0, 0, 0, 2)),
        ({**ITEMS, "input_tokens_details": {"cached_tokens": 4}}, RequestUsage(9, 4, 0, 0, 2)),
        ({"usage": {**ITEMS, **CACHED, **HOUR}}, RequestUsage(79, 40, 20, 10, 2)),
        ({**CHAT, "prompt_cache_hit_tokens": 4}, RequestUsage(9, 4, 0, 0, 2)),
        ({**CHAT, "prompt_tokens_details": {"cache_write_tokens": 3}}, RequestUsage(9, 0, 3, 0, 2)),
        *(({"usage": None}, None), ("no usage", None)),
    ],
)
def test_each_clients_usage_is_read(answer, found):
    """Responses and usages of OpenAI's and Anthropic's clients give the whole input."""
    assert read_whole_usage(answer) == found


def compressor(store: Any, clock: Any = None) -> ContextCompressor:
    return ContextCompressor(SMALL, summarizer=paid, store=store, clock=clock)


def test_another_process_has_the_sessions_bill(store):
    """All processes of a session add to one bill."""
    ours = compressor(store)
    messages = coding_turns(20)
    ours.compress_sync(messages, session_id="s")
    ours.record_usage(usage(5_000, 1_000), session_id="s")
    known = ours.record_usage(usage(6_000, 5_000), session_id="s")
    later = compressor(store)
    assert later.bill("s") == known
    assert later.compress_sync(messages, session_id="s").bill == known
    both = later.record_usage(usage(7_000, 6_000), session_id="s")
    assert (both.requests, both.usage.prompt_tokens, both.summaries) == (3, 18_000, PAID)
    assert ours.bill("s") == both
    assert later.bill("other").requests == 0


def test_a_long_bill_is_written_at_a_bounded_pace(sql_store, statements):
    """Of 200 reports within a minute few are written before the compressor closes."""
    now = [1e9]
    ours = compressor(sql_store, lambda: now[0])
    ours.compress_sync(coding_turns(2), session_id="s")
    for _ in range(200):
        now[0] += 0.3
        bill = ours.record_usage(usage(5_000), session_id="s")
    assert 10 < sum(s.startswith("UPDATE compressor_notes") for s in statements) < 50
    assert compressor(sql_store).bill("s").requests > 0.9 * bill.requests
    ours.close()
    assert compressor(sql_store).bill("s").usage == bill.usage


def test_a_store_that_cannot_be_written_stops_no_report():
    """While the store is down the bill is kept in the process."""
    ours = compressor(MemoryStore())
    ours.compress_sync(coding_turns(2), session_id="s")
    away = open_store("postgresql://nobody@localhost:1/nothing")
    ours = ContextCompressor(ours.config, store=away, shares_sessions_with=ours)
    assert ours.record_usage(usage(5_000), session_id="s").requests == 1
    assert ours.bill("s").requests == 1


def test_what_could_not_be_written_is_written_later_once():
    """Amounts that the store refused are in it once after the next write."""
    store = Observed()
    ours = compressor(store)

    def fail() -> None:
        raise StoreUnavailable("no space left")

    store.seen = fail
    for _ in range(3):
        ours.record_usage(usage(5_000), session_id="s")
    assert compressor(store).bill("s").requests == 0
    assert ours.bill("s").requests == 3
    store.seen = lambda: None
    ours.record_usage(usage(5_000), session_id="s")
    assert ours.bill("s").requests == compressor(store).bill("s").requests == 4


def test_more_sessions_than_are_remembered_keep_their_bills():
    """A service with many sessions loses no request of a session that rests."""
    store = MemoryStore()
    ours = compressor(store)
    for _ in range(4):
        for n in range(70):
            ours.compress_sync(coding_turns(1), session_id=f"s{n}")
            ours.record_usage(usage(900), session_id=f"s{n}")
    ours.close()
    later = compressor(store)
    assert {later.bill(f"s{n}").requests for n in range(70)} == {4}


def test_a_forked_child_does_not_write_its_parents_bill(tmp_path):
    """Each request is on the bill once, whichever process ends first."""
    path = tmp_path / "ledger.db"
    ours = compressor(open_store(path))
    ours.compress_sync(coding_turns(2), session_id="s")
    for _ in range(39):
        ours.record_usage(usage(5_000), session_id="s")
    child = os.fork()
    if child == 0:
        ours.close()
        os._exit(0)
    os.waitpid(child, 0)
    ours.close()
    assert compressor(open_store(path)).bill("s").requests == 39


def test_an_amount_is_the_same_text_everywhere():
    """A bill, a balance and the command line print dollars alike."""
    amounts = {0.0: "$0.0000", 0.00004: "< $0.0001", 0.0213: "$0.0213", 1_234.5: "$1,234.50"}
    for dollars, text in amounts.items():
        assert format_dollars(dollars) == text
        assert f", {text}\n" in str(Bill(cost=dollars, without_cost=0.0))
        assert str(Balance(dollars, dollars, None)) == (
            f"compressing now costs {text}, saves {text} a request"
        )


def test_a_forgotten_session_has_no_bill(sql_store):
    """`forget` takes the bill too."""
    ours = compressor(sql_store)
    ours.compress_sync(coding_turns(20), session_id="s")
    assert compressor(sql_store).bill("s").summaries == PAID
    sql_store.forget("default", "s")
    assert compressor(sql_store).bill("s") == Bill()


def test_without_compression_only_new_tokens_are_uncached():
    """Without compression only a warm cache would have had the transcript before."""
    used = RequestUsage(4_000, 1_000, 3_000, 0, 50)
    warm, cold = (
        uncompressed_usage(used, 10_000, 500, is_warm=is_warm) for is_warm in (True, False)
    )
    assert warm == RequestUsage(14_000, 13_500, 500, 0, 50)
    assert cold == RequestUsage(14_000, 0, 14_000, 0, 50)


# ---------------------------------------------------------------- several processes


def test_a_late_writer_does_not_set_the_last_request_back():
    """The store has the newest request, whichever process writes last."""
    store, key = MemoryStore(), ("default", "s")
    for now in (100.0, 50.0):
        account = Account(key)
        account.touch(now)
        account.add(Bill(requests=1))
        account.save(store, always=True)
    reader = Account(key)
    reader.refresh(store, lambda: store.open(*key), now=200.0, always=True)
    assert (reader.requested, reader.bill.requests) == (100.0, 2)


def test_the_account_of_a_session_that_is_no_longer_remembered_is_saved():
    """The accounts of the sessions that the newest ones replace are returned once."""
    states = SessionStates()
    accounts = [states.touch(("default", f"s{n}")).account for n in range(REMEMBERED_SESSIONS + 2)]
    assert states.take_evicted() == accounts[:2]
    assert states.take_evicted() == []
