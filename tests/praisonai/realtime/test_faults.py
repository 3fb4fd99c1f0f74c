"""A server or store that refuses, is silent or drops items loses nothing."""

import pytest

from praison_compressor import MemoryStore, StoreUnavailable
from praison_compressor.praisonai.realtime import RealtimeAgent
from tests.helpers.realtime_caller import (
    SMALL,
    archived,
    conversation,
    deletions,
    memories,
    small_talk,
    until,
)


async def test_a_refused_memory_deletes_nothing_and_is_tried_again():
    """A refused memory is sent again before anything is deleted."""
    async with conversation() as (server, agent, caller):
        await small_talk(caller, 3)
        server.refuse_next["conversation.item.create"] = 1
        await small_talk(caller, 1)
        assert deletions(server) == []
        assert len(server.ids) == 8
        await small_talk(caller, 2)
        assert memories(server) == [agent.memory]
        assert set(server.ids) & set(archived(agent)) == set()
        assert caller.errors == []


async def test_a_refused_deletion_stops_and_is_tried_again():
    """A refused deletion is repeated without archiving again."""
    async with conversation() as (server, agent, caller):
        await small_talk(caller, 3)
        server.refuse_next["conversation.item.delete"] = 1
        await small_talk(caller, 1)
        assert len(server.ids) == 9
        assert len(deletions(server)) == 1
        await small_talk(caller, 2)
        assert len(server.ids) == 1 + len(agent.items)
        assert sorted(archived(agent)) == sorted(set(archived(agent)))


async def test_a_server_that_does_not_answer_loses_nothing():
    """Without an acknowledgement nothing more is deleted or forgotten."""
    options = {"ack_timeout_seconds": 1.0}  # two turns are over long before
    async with conversation(**options) as (server, agent, caller):
        await small_talk(caller, 3)
        server.mute.add("conversation.item.create")
        await small_talk(caller, 1)
        assert deletions(server) == []
        server.mute.clear()
        server.mute.add("conversation.item.delete")
        await small_talk(caller, 2)
        (late,) = deletions(server)
        before = archived(agent)
        await server.now.send("conversation.item.deleted", item_id=late)
        await small_talk(caller, 1)
        assert late in before
        assert set(before) <= set(archived(agent))


async def test_a_store_that_fails_deletes_nothing():
    """Items stay on the server until a repeated fold has archived them."""

    class Failing(MemoryStore):
        failures = 1

        def _fail_once(self):
            if self.failures:
                self.failures -= 1
                raise StoreUnavailable("the disk is full")

        def commit(self, session, segments, skeleton=None):
            self._fail_once()
            return super().commit(session, segments, skeleton)

        def record_transcript(self, session, skeleton):
            self._fail_once()
            return super().record_transcript(session, skeleton)

    async with conversation(store=Failing()) as (server, agent, caller):
        await small_talk(caller, 4)
        assert (len(server.ids), agent.memory, deletions(server)) == (8, "", [])
        await small_talk(caller, 2)
        assert memories(server) == [agent.memory]


async def test_no_server_is_an_answer_not_an_exception():
    """Without a server `aconnect` reports the failure instead of raising."""
    errors = []
    agent = RealtimeAgent(url="ws://127.0.0.1:9/v1/realtime", verbose=False, **SMALL)
    agent.on_error(errors.append)
    assert not await agent.aconnect()
    assert len(errors) == 1
    assert not await agent.asend_text("hello")
    assert agent.items == ()


@pytest.mark.parametrize("delta", ["abc", "%%%%", "Gespräch", 5])
async def test_audio_that_is_no_base64_is_skipped_and_reported(delta, caplog):
    """Invalid audio is reported without ending the conversation."""
    async with conversation() as (server, agent, caller):
        await server.now.send("response.output_audio.delta", delta=delta)
        await until(lambda: caller.errors)
        played = []
        agent.on_audio(played.append)
        assert await caller.turn("Hello") == "All right, go on."
        assert len(caller.errors) == 1
        assert b"".join(played)
        assert "skipped" in caplog.text


@pytest.mark.parametrize(
    ("frame", "logged"),
    [
        ("[" * 5_000, "no JSON"),
        ('{"type": ' * 5_000, "no JSON"),
        ("]", "no JSON"),
        ("[]", "no object"),
        ('{"type": ["x"]}', ""),
    ],
)
async def test_a_frame_that_is_no_event_ends_no_connection(frame, logged, caplog):
    """The frame is logged without ending the connection."""
    async with conversation() as (server, _agent, caller):
        await server.now.socket.send_str(frame)
        assert await caller.turn("Hello") == "All right, go on."
        assert len(server.connections) == 1
        assert logged in caplog.text
