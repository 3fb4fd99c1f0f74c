"""Signed thinking is valid only after the messages that it was written after."""

from itertools import pairwise
from typing import Any

import pytest

from praison_compressor import MemoryStore
from praison_compressor.messages import Message
from praison_compressor.messages.shapes import signatures
from praison_compressor.testing import Call, LocalProvider, Reply, Rules
from tests.helpers.compressing import Model, compressor
from tests.helpers.native import brings, post, result
from tests.helpers.provider.anthropic import Anthropic

ADAPTIVE, ENABLED = {"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1_024}


@pytest.fixture
def binding():
    """Yield the API as accounts made since August 2026 have it: thinking is bound."""
    with LocalProvider(rules=Rules(bound_thinking=True), protocols=[Anthropic()]) as running:
        yield running


def reads(calls: int) -> Any:
    """Return a model that thinks, and reads `calls` files a turn."""

    steps = 0

    def answer(asked: Any) -> Reply:
        nonlocal steps
        steps = steps + 1 if asked.messages[-1]["role"] == "tool" else 0
        if steps >= calls:
            return Reply("All is read.", thinking="Enough. " * 9)
        return Reply("", (Call("read", {"path": f"{asked.number}.py"}),), thinking="Hm. " * 9)

    return answer


def play(
    provider: LocalProvider,
    ours: Any,
    turns: int,
    words: int = 100,
    said: Any = None,
    thinking: Message = ADAPTIVE,
) -> list[Any]:
    """Hold a conversation, in the list `said` if it is given; return each request's result.

    Models that bind thinking have adaptive thinking alone; `ENABLED` wants that of a loop back.
    """
    messages: list[Message] = [] if said is None else said
    results = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Read the files of part {turn}."})
        while messages[-1]["role"] == "user":
            found = ours.compress_sync(messages, session_id="s")
            results.append(found)
            reply = post(provider, found.messages, model="claude-fable-5-1", thinking=thinking)
            assert reply.status_code == 200, reply.text
            content = reply.json()["content"]
            messages.append({"role": "assistant", "content": content})
            ids = [block["id"] for block in content if block["type"] == "tool_use"]
            if ids:
                messages.append(brings(*(result(i, "lorem ipsum dolor " * words) for i in ids)))
    return results


def signed(messages: list[Message]) -> list[int]:
    return [index for index, message in enumerate(messages) if signatures(message)]


@pytest.mark.parametrize("options", [{}, {"tool_policies": {"*": "summarize"}}])
@pytest.mark.parametrize("has_model", [True, False])
def test_no_block_is_sent_after_another_prefix(options, has_model, binding):
    """No signed thinking is sent after a changed prefix, through several compressions."""
    binding.answer_with(reads(3))
    ours = compressor(Model() if has_model else None, context_window=8_000, **options)
    results = play(binding, ours, turns=12)
    compressions = {(one.masked, *(s.run for s in one.segments)) for one in results}
    assert len(compressions) >= 3
    assert binding.refused == []
    assert signed(results[-1].messages)  # of the turns since
    grown = [two.messages[: len(one.messages)] == one.messages for one, two in pairwise(results)]
    assert grown.count(False) == len(compressions) - 1  # the prefix stays between compressions


def test_another_process_leaves_out_the_same_blocks(binding):
    """The omitted blocks depend only on the transcript and the ledger."""
    binding.answer_with(reads(3))
    store = MemoryStore()
    ours = compressor(Model(), context_window=8_000, store=store)
    said: list[Message] = []
    last = play(binding, ours, turns=9, said=said)[-1]
    other = compressor(None, context_window=8_000, store=store)
    again = other.compress_sync(said[:-1], session_id="s")
    assert again.messages == last.messages != said[:-1]
    assert again.tokens_after == other.tokens.messages(again.messages)


def test_a_running_loop_keeps_its_thinking():
    """A running loop keeps its thinking through a compression."""
    with LocalProvider(reads(20), protocols=[Anthropic()]) as provider:
        results = play(provider, compressor(Model()), turns=1, thinking=ENABLED)
        assert provider.refused == []
    view = results[-1].messages
    assert results[-1].context_status != "full"
    assert signed(view) == [n for n, m in enumerate(view) if m["role"] == "assistant"]


@pytest.mark.parametrize("policy", ["mask", "summarize"])
def test_in_a_loop_thinking_after_a_compression_is_left_out(policy, binding):
    """In a loop only the thinking after a compression is left out."""
    binding.answer_with(reads(30))
    ours = compressor(Model(), model="claude-fable-5-1", tool_policies={"*": policy})
    results = play(binding, ours, turns=2)
    assert binding.refused == []
    assert len({one.session_id for one in results}) >= 3
    assert sum(bool(signed(one.messages)) for one in results) > len(results) / 2


def test_in_a_loop_only_a_nearly_full_window_is_compressed(binding):
    """A loop that is compressed at a nearly full window is accepted by the API."""
    binding.answer_with(reads(6))
    ours = compressor(Model(), context_window=8_000, output_reserve=1_000)
    results = play(binding, ours, turns=6, words=110)
    grown = [
        two.segments != one.segments or two.masked != one.masked for one, two in pairwise(results)
    ]
    assert any(grown)
    assert binding.refused == []


def test_the_room_of_thinking_that_is_not_sent_goes_to_the_tail():
    """The room of thinking that is not sent goes to the tail."""
    block = {"type": "thinking", "thinking": "Hm, the cargo. " * 60, "signature": "s"}
    turns = [
        message
        for n in range(40)
        for message in (
            {"role": "user", "content": f"Unload hold {n} of the ship by noon."},
            {
                "role": "assistant",
                "content": [
                    {**block, "signature": f"s{n}"},
                    {"type": "text", "text": f"Hold {n} is empty now. " * 12},
                ],
            },
        )
    ]
    model = Model("## Done\nUnload: hold after hold of the ship by noon, with its cargo.")
    ours = compressor(model, protect_last_n_tokens=5_000)
    view = ours.compress_sync([*turns, turns[0]], target_tokens=1_500, force=True)
    assert view.tokens_after > 0.6 * 1_500
