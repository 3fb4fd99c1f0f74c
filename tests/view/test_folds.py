"""Summaries stay side by side; they are rarely folded into one."""

import asyncio
import random
import re
from itertools import pairwise

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import Message, text_of
from tests.helpers.compressing import compressor
from tests.helpers.transcripts import prose, said, step, user


def talk(turns: int) -> list[Message]:
    """Return a conversation full of names, so that quotes fill the room."""
    chance = random.Random(7)

    def name() -> str:
        return f"{chance.choice('pqrs')}{chance.randrange(10**6)}"

    messages: list[Message] = [{"role": "system", "content": "You look after the store."}]
    for turn in range(turns):
        paths = " ".join(f"src/{name()}/{name()}.py" for _ in range(12))
        said = " ".join(f"{name()} calls {name()}." for _ in range(30))
        messages += [
            {"role": "user", "content": f"Look at step {turn}: {paths}"},
            {"role": "assistant", "content": f"In step {turn} I found that {said}"},
        ]
    return messages


def test_most_compressions_fold_nothing():
    """At most a third of the compressions fold summaries."""
    calls = []

    async def model(messages: list[Message]) -> str:
        calls.append(len(messages))
        paths = re.findall(r"src/\w+/\w+\.py", text_of(messages[-1]))
        return f"In part {len(calls)} some modules were looked at: {', '.join(paths[-4:])}."

    ours = compressor(model, context_window=20_000, protect_last_n_tokens=20_000)
    messages, counts = talk(200), []

    async def grow() -> None:
        for end in range(3, len(messages) + 1, 2):
            before = len(calls)
            result = await ours.compress(messages[:end], session_id="s")
            if len(calls) > before:
                counts.append(len(result.segments))

    asyncio.run(grow())
    folds = sum(now <= before for before, now in pairwise(counts))
    assert len(counts) >= 5
    assert 1 <= folds <= len(counts) / 3


def test_later_static_texts_carry_a_models_prose_on():
    """A model's prose stays in static folds after the model fails."""
    rules = [f"Agreed: {word} comes before lunch." for word in "audit brief call draft".split()]
    asked = []

    async def model(messages: list[Message]) -> str:
        asked.append(messages)
        if len(asked) > 1:
            raise ConnectionError("the model is gone")
        return "\n".join(["## Agreed", *rules])

    ours = compressor(
        model, context_window=20_000, protect_last_n_tokens=20_000, summary_max_retries=0
    )
    messages = talk(90)
    messages[4]["content"] += " Audit, brief, call and draft are agreed: what comes before lunch."
    views = []
    for end in range(3, len(messages) + 1, 2):
        result = ours.compress_sync(messages[:end], session_id="s")
        if result.written:
            view = "\n".join(str(message["content"]) for message in result.messages)
            views.append((result.summary_method, [rule in view for rule in rules]))
    methods = [method for method, _ in views]
    assert methods == ["model", *["static"] * (len(views) - 1)]
    assert len(views) >= 4
    assert [seen for _, seen in views] == [[True] * len(rules)] * len(views)


def test_a_tiny_room_quotes_the_user_after_many_compressions():
    """In a tiny room one summary quotes each user message, however often it was compressed."""
    wishes = [f"Please move seat {n * 7} of row {n} to the aisle." for n in range(7)]
    messages: list[Message] = [{"role": "system", "content": prose(900)}]
    for n, wish in enumerate(wishes):
        messages += [user(wish), *step(f"c{n}", prose(120, n), "move", seat=n), said(prose(25, n))]
    ours = ContextCompressor(CompressorConfig(model="gpt-4o", recall=True))
    size = TokenCounter("gpt-4o").messages([messages[0], *messages[-4:]]) + 330
    for end in (9, 13, 17, 21, 25, 29):
        view = ours.compress_sync(
            messages[:end], session_id="s", target_tokens=size, force=True
        ).messages
    assert sum("<conversation-summary>" in text_of(message) for message in view) == 1
    assert [wish for wish in wishes if wish not in str(view)] == []
