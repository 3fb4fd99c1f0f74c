"""Many threads at once on one compressor, on one session and on many."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from praison_compressor.ledger.segments import verify
from praison_compressor.messages import Message
from tests.helpers.compressing import Model, compressor
from tests.helpers.transcripts import session

AT_ONCE = 64


def test_64_threads_on_one_session_pay_once_and_see_one_view() -> None:
    """One flight: 63 wait for it and take what it wrote."""
    model = Model()
    ours = compressor(model)
    messages = session(12)
    barrier = threading.Barrier(AT_ONCE)

    def turn(_: int) -> list[Message]:
        barrier.wait()
        return ours.compress_sync(messages, session_id="s").messages

    with ThreadPoolExecutor(AT_ONCE) as pool:
        views = list(pool.map(turn, range(AT_ONCE)))
    assert len(model.requests) == 1
    assert views == [views[0]] * AT_ONCE
    verify(ours.store.open("default", "s").entries)


def test_64_threads_on_64_sessions_do_not_mix() -> None:
    """Each session has its own ledger, its own bill and its own words."""
    model = Model()
    ours = compressor(model)

    def turn(number: int) -> tuple[list[Message], list[Message]]:
        messages = session(12)
        messages[1] = {**messages[1], "content": f"the task of session {number}"}
        view = ours.compress_sync(messages, session_id=f"s{number}").messages
        return ours.verbatim(view, session_id=f"s{number}"), messages

    with ThreadPoolExecutor(AT_ONCE) as pool:
        pairs = list(pool.map(turn, range(AT_ONCE)))
    assert [back == given for back, given in pairs] == [True] * AT_ONCE
    assert len(model.requests) == AT_ONCE
