"""The rules that bind stand at the end of the newest summary, whoever writes it and in any room."""

from __future__ import annotations

import asyncio
import pickle
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import result_text
from praison_compressor.summaries.static import RULES
from tests.benchmarks.rules.__main__ import MODELS, Model, kept, play, told
from tests.benchmarks.rules.scenarios import scenarios
from tests.helpers.transcripts import step

Message = dict[str, Any]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def work(number: int, size: int = 45) -> list[Message]:
    body = f"Record {number}. " + "It was read as it stands there. " * size
    return [
        *step(f"c{number}", body, path=f"data/{number}.txt"),
        {"role": "assistant", "content": "Read."},
    ]


def transcript(*said: str) -> list[Message]:
    """What the user said in turns, with work after each, and a last request."""
    messages = [{"role": "system", "content": "You are an agent."}, user("Sort the records.")]
    for turn, text in enumerate(said):
        messages += [{"role": "assistant", "content": "Yes."}, user(text)]
        for part in range(5):
            messages += work(10 * turn + part)
    return [*messages, user("Go on.")]


def listed(view: list[Message]) -> str:
    """The list of the newest summary, to its end."""
    newest = [text for text in map(result_text, view) if text.startswith("<conversation-summary")][
        -1
    ]
    return newest.partition(f"## {RULES}\n")[2].removesuffix("\n</conversation-summary>")


def compressor(model: Model = None, **options: Any) -> ContextCompressor:
    small = {"model": "gpt-4o", "context_window": 9_000, "protect_last_n_tokens": 1_000}
    small["tool_policies"] = {"*": "summarize"}
    return ContextCompressor(CompressorConfig(**{**small, **options}), summarizer=model)


@pytest.mark.parametrize(
    ("scenario", "model"),
    [*zip(scenarios()[4:8], [*MODELS.values(), None], strict=True)],
    ids=["coding", "retail", "research", "voice"],
)
def test_a_rule_of_an_early_turn_stands_in_round_nine(scenario: Any, model: Model) -> None:
    """Without a model, with one that mentions none and one that contradicts: coding, retail,
    research and voice. What was lifted is not told as if it held, and nothing is left out."""
    assert scenario.rounds == 9
    result = play(scenario, model)
    assert kept(scenario, result.messages) == len(scenario.binding)
    assert told(scenario, result.messages) == []
    assert result.dropped_rules == ()
    held = {rule.text for rule in result.rules if rule.holds}
    assert held >= set(scenario.binding)
    assert not held & scenario.lifted.keys()


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_newest_summary_ends_with_the_list(model: Model) -> None:
    """In the user's order, with who said it and where to read it; what a model writes under that
    heading is none, and what was lifted is told as lifted."""
    said = ("Never push to main. Call me Dana. Now sort the first part.",
            "You may delete branch b7. Now sort the second part, by size.",
            "You may push to main after all. Look at the third part of it too.")  # fmt: skip
    ours = compressor(model, recall=True)
    ours.compress_sync([*transcript(*said[:2])])
    result = ours.compress_sync(transcript(*said))
    view = [rule.text for rule in result.rules if rule.holds]
    assert view == ["Call me Dana.", "You may delete branch b7."]
    text = listed(result.messages)
    assert text.splitlines()[-1].endswith(
        "the user's open request: You may push to main after all. Look at the third part of it too."
    )
    lines = [line.partition("] ")[2] for line in text.splitlines() if line.startswith("- [")]
    assert lines[0] == "user: Call me Dana."
    assert lines[1] == "user allowed this, once: You may delete branch b7."
    lifted = 'no longer holds since "You may push to main after all."'
    assert lifted in text
    assert text.count("Never push to main.") == 1
    newest = result_text(result.segments[-1].rendered)
    assert newest.count(f"## {RULES}") == 1
    assert "\n## Rules that hold\n" not in newest
    assert pickle.loads(pickle.dumps(result)).rules == result.rules


@pytest.mark.parametrize(
    ("short", "is_open"),
    [("Please continue.", True), ("Yes, do it.", True), ("Now the next part.", False)],
)
def test_a_request_stays_open_while_the_user_says_to_go_on(short: str, is_open: bool) -> None:
    """Who has asked for the next part six times no longer waits for what he asked before."""
    asked = "Please sort the whole of the archive by size and then by name."
    said = ("Never push to main. Begin with this.", asked, *[short] * 6)
    result = compressor(None).compress_sync(transcript(*said))
    assert (f"the user's open request: {asked}" in listed(result.messages)) is is_open


async def prose(messages: list[Message]) -> str:
    """A model's summary that names no rule."""
    return "## Done\nThe modules up to here were repaired."


@pytest.mark.parametrize("model", [None, prose])
@pytest.mark.parametrize("window", [6_000, 8_000])
def test_rules_and_words_outlive_a_turn_whose_steps_are_dropped(window: int, model: Any) -> None:
    """Some hosts keep of a turn's tool calls nothing once it has ended, and a text of these goes
    with them: the rules are in another, and what the user said before has a text that says
    something, though a model is told of the larger one."""
    ours = ContextCompressor(
        CompressorConfig(model="gpt-4o", context_window=window, recall=True), summarizer=model
    )
    said = [user("Repair the modules. Never touch src/legacy/.")]
    more = {7: " From now on commit messages must start with BILL:."}
    more[9] = " Actually you may touch src/legacy/ now."
    views = []
    for turn in range(2, 50):
        said.append(user(f"Repair src/module_{turn}.py as ticket {turn} says.{more.get(turn, '')}"))
        loop = list(said)
        for part in range(3):
            line = f"def fn_{turn}_{part}_{{0}}(order): return compute({{0}}, order['total_{{0}}'])"
            body = "\n".join(map(line.format, range(70)))
            loop += step(f"c{turn}_{part}", body, path=f"src/module_{turn}_{part}.py")
            view = ours.compress_sync(loop, session_id="s").messages
            views.append((turn, [result_text(message) for message in view]))
        said.append(
            {
                "role": "assistant",
                "content": f"Turn {turn}: it is repaired. " + "I left the rest open. " * 9,
            }
        )
    frames = [t for _, view in views for t in view if t.startswith("<conversation-summary")]
    assert len(frames) > 30
    assert [text for text in frames if len(text.split("\n")) < 4] == []
    for since, words in ((7, "must start with BILL:"), (9, "may touch src/legacy/ now")):
        assert [n for n, view in views if n >= since and words not in "\n".join(view)] == []


def test_a_tight_room_takes_the_oldest_preference_first_and_says_so() -> None:
    """The list is the last thing to go; `dropped_rules` names what there was no room for."""
    wishes = tuple(f"I prefer the colour {n}x for the report {n}x." for n in range(10, 34))
    bans = tuple(f"Never touch the {word} archive." for word in ("north", "south", "east", "west"))
    said = [" ".join(wishes[n : n + 6]) + f" {bans[n // 6]}" for n in range(0, 24, 6)]
    result = compressor().compress_sync(transcript(*said, "Now sort."), target_tokens=420)
    text = listed(result.messages)
    gone = [rule.text for rule in result.dropped_rules]
    assert gone
    assert gone == list(wishes[: len(gone)])
    assert f"- {len(gone)} more, no room" in text
    assert all(text.count(ban) == 1 for ban in bans)


def test_a_document_that_binds_is_not_masked() -> None:
    """One line in its place would hide its rules while nothing else tells them."""
    policy = "# House\n" + "\n".join(f"- Never open box {n} in hall {n}." for n in range(40))
    opening = transcript()[:-1] + step("p", policy, "read_file", path="AGENTS.md")
    messages = [*opening, *(m for n in range(13) for m in work(n)), user("Go on.")]
    result = compressor(MODELS["silent"], tool_policies={}).compress_sync(messages)
    assert result.context_status == "masked"
    assert policy in map(result_text, result.messages)
    assert len(result.rules) == 40
    assert result.dropped_rules == ()


def test_a_quiet_turn_has_the_rules_of_its_own_messages_too() -> None:
    """Where nothing is compressed, the rules are those of the messages."""
    ours = compressor()
    short = [user("Never push to main."), {"role": "assistant", "content": "Yes."}]
    assert [rule.text for rule in ours.compress_sync(short).rules] == ["Never push to main."]
    longer = [*short, user("Always lint before a commit.")]
    found = ours.compress_sync(longer)
    assert [(rule.text, rule.since) for rule in found.rules][1] == (
        "Always lint before a commit.",
        2,
    )


def test_rules_go_with_a_session_into_forks_and_other_processes(tmp_path: Path) -> None:
    """A fork and a resumed session have them, listed and in the text; what a fork lifts holds in
    the other."""
    store = f"sqlite:///{tmp_path / 'ledger.db'}"
    said = ["Never push to main.", "Look at the second part.", "Look at the third part of it."]
    with closing(compressor(store_url=store)) as first:
        first.compress_sync(transcript(*said), session_id="root")
    lifts = [*said, "You may push to main after all.", "Look at the last part."]
    for session, words, held in (("fork", lifts, False), ("root", [*said, "Go on so."], True)):
        with closing(compressor(store_url=store)) as later:
            result = later.compress_sync(
                transcript(*words), session_id=session, parent_session_id="root", force=True
            )
        (rule,) = (rule for rule in result.rules if rule.text == said[0])
        assert rule.holds is held
        told = listed(result.messages)
        assert f'"{said[0]}"' in told if not held else f"user: {said[0]}" in told
    with closing(compressor(store_url=store)) as again:
        assert f"user: {said[0]}" in listed(again.resume("root", token_budget=7_000).messages)


async def test_rules_stand_in_what_the_background_writes() -> None:
    """In the text that is sent while the model writes, and in the model's own."""
    ours = compressor(MODELS["silent"], background=True)
    messages = transcript("Never push to main.", *(f"Look at part {n}." for n in range(4)))
    sent = written = await ours.compress(messages, session_id="s")
    for _ in range(200):
        await asyncio.sleep(0.05)
        written = await ours.compress(messages, session_id="s")
        if [each.method for each in written.segments] == ["model"]:
            break
    assert "user: Never push to main." in listed(sent.messages)
    assert "user: Never push to main." in listed(written.messages)
    assert written.segments[-1].method == "model"
