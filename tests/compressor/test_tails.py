"""A compression keeps the newest messages verbatim, and the user's words of older ones."""

import functools
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import Message, split_steps, text_of
from praison_compressor.view.budget import Budget
from praison_compressor.view.frame import is_framed
from tests.helpers.compressing import Model, requests_of
from tests.helpers.transcripts import coding_turns, find_repairs

TOKENS = TokenCounter("gpt-4o")
READ = ", ".join(f"src/mod_{n}/part_0.py" for n in range(1, 9))
ANSWER = f"## Done\nRead {READ}.\n" + 6 * (
    "Each module is looked after; lorem ipsum dolor, careful: the port must stay. "
)


@dataclass(frozen=True)
class Kept:
    """Tokens of a compressed view, its tail, and the step before the tail."""

    target: int
    half: int
    """Half of what the target leaves beside the head."""
    tail: int
    view: int
    step: int


def compressed(
    messages: list[Message],
    window: int,
    asked: int | None = None,
    *,
    by_model: bool = False,
    grows: bool = False,
) -> Kept:
    """Return what is kept of a session; with `grows` it is sent turn for turn."""
    options = {} if asked is None else {"protect_last_n_tokens": asked}
    config = CompressorConfig(
        model="gpt-4o", context_window=window, tool_policies={"*": "summarize"}, **options
    )
    model = Model(ANSWER) if by_model else None
    ours = ContextCompressor(config, summarizer=model, tokens=TOKENS)
    ends = [n for n, m in enumerate(messages, 1) if m["role"] == "user"] if grows else []
    sent = [(end, ours.compress_sync(messages[:end])) for end in (*ends, len(messages))]
    summarized = [(end, r) for end, r in sent if r.summary_method in ("model", "static")]
    assert summarized
    end, newest = summarized[-1]
    return measured(newest.messages, messages[:end], Budget.of(config, window).target)


def measured(view: list[Message], messages: list[Message], target: int) -> Kept:
    """Return the sizes of a view; its tail follows its last summary."""
    framed = [n for n, message in enumerate(view) if is_framed(message)]
    tail = view[framed[-1] + 1 :]
    start = len(messages) - len(tail)
    before = next(step for step in reversed(split_steps(messages)) if step.start < start)
    return Kept(
        target,
        (target - size(view[: framed[0]])) // 2,
        size(tail),
        TOKENS.messages(view),
        size(messages[before.start : start]),
    )


def size(messages: list[Message]) -> int:
    return sum(map(TOKENS.message, messages))


@functools.cache
def twice(window: int) -> list[Message]:
    """Return a session of about twice the window."""
    each = size(coding_turns(3)[1:]) // 3
    return coding_turns(2 * window // each + 1)


@pytest.mark.parametrize("by_model", [False, True])
@pytest.mark.parametrize(
    ("window", "grows"),
    [*((window, False) for window in (8_000, 24_000, 64_000)), (8_000, True), (16_000, True)],
)
@pytest.mark.parametrize("asked", [None, 25_000])
def test_the_default_tail_is_half_of_what_the_head_leaves(window, grows, asked, by_model):
    """From 20,000 tokens on, a tail has half of the target less the head."""
    kept = compressed(twice(window), window, asked, by_model=by_model, grows=grows)
    assert kept.tail >= kept.half


@pytest.mark.parametrize(("by_model", "share"), [(False, 0.95), (True, 0.9)])
@pytest.mark.parametrize("window", [8_000, 24_000, 64_000])
def test_a_view_fills_its_target(window, by_model, share):
    """A view fits its target and fills 95 % of it, or 90 % with a model's short prose."""
    kept = compressed(twice(window), window, by_model=by_model)
    assert kept.view <= kept.target
    # `ANSWER` is shorter than the prose that the model is asked for.
    assert kept.view >= share * kept.target


@given(
    window=st.integers(6_000, 40_000),
    turns=st.integers(10, 40),
    words=st.integers(20, 120),
    asked=st.lists(st.integers(0, 25_000), min_size=2, max_size=3, unique=True).map(sorted),
    by_model=st.booleans(),
)
@settings(max_examples=10, deadline=None)
def test_more_asked_never_gives_less_kept(window, turns, words, asked, by_model):
    """A larger `protect_last_n_tokens` never keeps less."""
    messages = coding_turns(max(turns, 2 * window // (14 * words)), words=words)
    kept = [compressed(messages, window, n, by_model=by_model) for n in asked]
    tails = [each.tail for each in kept]
    assert tails == sorted(tails)
    assert all(
        each.tail + each.step > each.half
        for n, each in zip(asked, kept, strict=True)
        if n >= 20_000
    )


TALK = ("the meeting", "our customer", "a colleague", "the old report", "the board")
DID = ("talked about the trip", "wrote about the weather", "asked for some older papers")


def long_messages() -> tuple[list[dict], list[str]]:
    """Return 24 user messages of 2,000 tokens each, and the first sentence of each."""
    chance = random.Random(3)
    messages = [
        {"role": "system", "content": "You are a coding agent."},
        {"role": "user", "content": "Help me with the migration of the platform."},
        {"role": "assistant", "content": "Gladly."},
    ]
    keys = [
        f"The service of customer {7_000 + n} is the one that broke on day {n}." for n in range(24)
    ]
    for key in keys:
        rest = " ".join(
            f"On day {chance.randrange(900)} {chance.choice(TALK)} {chance.choice(DID)}."
            for _ in range(170)
        )
        messages.append({"role": "user", "content": f"{key} {rest}"})
        messages.append({"role": "assistant", "content": "I will take that into account."})
    return [*messages, {"role": "user", "content": "Go on now."}], keys


@pytest.mark.parametrize("prose", [1, 40])
@pytest.mark.parametrize(("window", "grows"), [(8_000, False), (16_000, True)])
def test_a_models_view_quotes_no_fewer_user_messages_than_a_static_one(window, grows, prose):
    """A model's view quotes no fewer user messages than a static view."""

    async def model(messages):
        return (
            "## Done\n"
            + "The migration of the platform goes on; the service of each customer broke. " * prose
        )

    messages, keys = long_messages()

    def kept(summarizer) -> int:
        config = CompressorConfig(model="gpt-4o", context_window=window)
        ours = ContextCompressor(config, summarizer=summarizer, tokens=TOKENS)
        for request in requests_of(messages) if grows else [messages]:
            result = ours.compress_sync(request)
        flat = " ".join(" ".join(text_of(message).split()) for message in result.messages)
        return sum(key in flat for key in keys)

    assert kept(model) >= max(kept(None), 23)


# ---------------------------------------------------------------- a size that was asked for


SIZED = coding_turns(30, words=120)
HALF = TOKENS.messages(SIZED) // 2


def test_the_same_view_comes_again():
    """A second request for a size returns the same view, with the same summary."""
    ours = ContextCompressor(CompressorConfig(model="gpt-4o"), tokens=TOKENS)
    first, again = (ours.compress_sync(SIZED, target_tokens=HALF) for _ in range(2))
    assert again.messages == first.messages
    assert find_repairs(first.messages) == []
    assert again.summary_method == "reused"


def test_the_tail_takes_the_room_that_a_summary_leaves():
    """The tail takes the room that a summary leaves."""
    ours = ContextCompressor(CompressorConfig(model="gpt-4o"), tokens=TOKENS)
    view = ours.compress_sync(SIZED, target_tokens=HALF)
    assert 0.85 * HALF <= view.tokens_after <= HALF
    assert TOKENS.messages([m for m in SIZED if m in view.messages]) > 0.5 * HALF


def test_an_unrecorded_view_fills_its_size():
    """A view that is recorded nowhere has 95 % to 100 % of its size, as it has no references."""
    ours = ContextCompressor(CompressorConfig(model="gpt-4o"), tokens=TOKENS)
    best = ours.fallback_view(SIZED, target_tokens=HALF, session_id="other").messages
    assert 0.95 * HALF < TOKENS.messages(best) <= HALF
