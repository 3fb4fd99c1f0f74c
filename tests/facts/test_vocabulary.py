"""Every word by which facts are read, and choices compared with the plain way to make them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from praison_compressor.facts import Excerpt, Facts, Note, Said, extract, missing
from praison_compressor.facts.files import effects_of
from praison_compressor.facts.outcomes import outcome_of
from praison_compressor.facts.passages import passages
from praison_compressor.facts.rendering import details
from praison_compressor.facts.selection import LEAST_WORTH, OVERHEAD, Chooser
from praison_compressor.facts.shell import effects
from praison_compressor.facts.stale import Stale
from praison_compressor.facts.worklist import last_words, notes
from praison_compressor.messages import ToolCall


def tool(name: str, /, **arguments: Any) -> list[tuple[str, str, str]]:
    """What a call does to files."""
    found = effects_of(ToolCall("c", name, json.dumps(arguments)))
    return [(effect.path, effect.action, effect.target) for effect in found]


@pytest.mark.parametrize("program", "cat head tail less more nl wc bat stat file diff".split())
def test_programs_that_read(program: str) -> None:
    """Their files are read."""
    assert [(e.path, e.action) for e in effects(f"{program} a.txt")] == [("a.txt", "read")]


@pytest.mark.parametrize("program", ["grep", "rg", "ag", "awk"])
def test_programs_that_search(program: str) -> None:
    """The first word is what they look for."""
    assert [(e.path, e.action) for e in effects(f"{program} b.txt a.txt")] == [("a.txt", "read")]


@pytest.mark.parametrize(
    "prefix", "sudo time nohup env command exec xargs nice then do else".split()
)
def test_words_before_a_program(prefix: str) -> None:
    """The program behind them is what runs."""
    assert [(e.path, e.action) for e in effects(f"{prefix} rm a.txt")] == [("a.txt", "deleted")]


@pytest.mark.parametrize(
    "opening",
    ["<system-reminder", "<command-name>", "<local-command", "<task-notification", "<environment",
     "Caveat: The messages below", "Base directory for this skill", "[Request interrupted",
     "<conversation-summary", "# AGENTS.md instructions"],
)  # fmt: skip
def test_hosts_that_speak_in_the_users_role(opening: str) -> None:
    """Nobody said these words."""
    (passage,) = passages([{"role": "user", "content": f"{opening} and so on"}])
    assert passage.source == "host"


@pytest.mark.parametrize(
    "key",
    "offset limit timeout head_limit view_range start_line end_line line character line_number "
    "security_risk".split(),
)
def test_arguments_that_only_say_where_to_look(key: str) -> None:
    """They are not said."""
    made = {"id": "c", "type": "function", "function": {"name": "t"}}
    made["function"] = {"name": "t", "arguments": json.dumps({"path": "a", key: 5})}  # type: ignore[dict-item]
    (passage,) = passages([{"role": "assistant", "content": None, "tool_calls": [made]}])
    assert passage.text == "t a"


@pytest.mark.parametrize(
    "key",
    "file_path filepath path filename file file_name target_file notebook_path relative_path "
    "absolute_path relative_workspace_path source_path src old_path source from uri paths "
    "files".split(),
)
def test_arguments_that_name_a_file(key: str) -> None:
    """Whatever the tool calls them."""
    assert tool("read", **{key: "a.py"}) == [("a.py", "read", "")]


@pytest.mark.parametrize(
    "key", ["new_path", "destination", "dest", "target", "to", "target_path", "new_name"]
)
def test_arguments_that_say_where_a_file_goes(key: str) -> None:
    """Whatever the tool calls them."""
    assert tool("move", path="a.py", **{key: "b.py"}) == [("a.py", "moved", "b.py")]


@pytest.mark.parametrize("key", ["path", "file_path", "filename", "file"])
def test_entries_that_name_a_file(key: str) -> None:
    """In a list of files."""
    assert tool("read", files=[{key: "a.py"}]) == [("a.py", "read", "")]


@pytest.mark.parametrize(
    ("name", "action"),
    [("move_it", "moved"), ("rename", "moved"), ("mv", "moved"), ("do_mv_now", "moved"),
     ("delete", "deleted"), ("remove", "deleted"), ("unlink", "deleted"), ("rm", "deleted"),
     ("edit", "edited"), ("patch", "edited"), ("replace", "edited"), ("insert", "edited"),
     ("update", "edited"), ("modify", "edited"), ("append", "edited"), ("apply", "edited"),
     ("diff", "edited"), ("create", "created"), ("write", "created"), ("save", "created"),
     ("new_file", "created"), ("touch", "created"), ("read", "read"), ("view", "read"),
     ("open", "read"), ("cat", "read"), ("get_file", "read"), ("show", "read"), ("load", "read"),
     ("fetch_file", "read"), ("VIEW", "read")],
)  # fmt: skip
def test_verbs_in_the_names_of_tools(name: str, action: str) -> None:
    """What a tool does to a file, by its name."""
    assert tool(name, path="a.py") == [("a.py", action, "")]


@pytest.mark.parametrize(
    "sentence",
    ["We decided on it.", "The decision stands.", "It is so because of X.", "A instead of B, yes.",
     "A rather than B, yes.", "The root cause was X.", "The issue is small.", "The problem was X.",
     "The bug is here.", "The fix was easy.", "The cause is known.", "It turns out fine.",
     "I chose the first.", "I will use SQLite.", "We are going with A.", "The reason: none of it.",
     "A, so that B holds.", "It is a trade-off.", "It is a tradeoff."],
)  # fmt: skip
def test_sentences_that_decide(sentence: str) -> None:
    """They say so in one of many ways."""
    (passage,) = passages([{"role": "assistant", "content": sentence}])
    assert [kind for kind, _ in notes(passage)] == ["decision"]


@pytest.mark.parametrize(
    "sentence",
    ["Next I look at it.", "The next steps are A.", "It is still failing.", "I still need to.",
     "Still missing: A.", "Still to do: A.", "That is still open.", "The remaining part.",
     "A todo for later.", "Something to do.", "It is not yet done.", "A follow-up is due.",
     "A followup is due.", "Two are left to mend.", "We are blocked by A.", "That is pending.",
     "Now I look at it.", "Now let me look.", "Now let's look at it.", "Let me now look.",
     "I'll now look at it.", "We need to look.", "It needs to go on."],
)  # fmt: skip
def test_sentences_about_open_work(sentence: str) -> None:
    """They say so in one of many ways."""
    (passage,) = passages([{"role": "assistant", "content": sentence}])
    assert [kind for kind, _ in notes(passage)] == ["open"]


@pytest.mark.parametrize(
    "sentence",
    ["always lint", "never push", "you must test", "you mustn't push", "don't push", "dont push",
     "do not push", "from now on lint", "make sure it runs", "only use A", "no need to ask",
     "remember this", "it is important", "it is required", "it requires care", "I prefer tabs",
     "please keep it", "avoid it", "do it without B"],
)  # fmt: skip
def test_sentences_that_are_rules(sentence: str) -> None:
    """They hold for the whole session."""
    assert extract([{"role": "user", "content": sentence}]).user[0].standing


@pytest.mark.parametrize(
    "cue",
    ["No, {}", "Nope, {}", "Actually {}", "Sorry, {}", "Wait, {}", "Correction: {}",
     "Scratch that, {}", "Rather {}", "Hmm, {}", "Oops, {}", "{} instead", "change it, {}",
     "switch to that, {}", "I meant {}", "forget it, {}", "make it so, {}", "it should be so: {}",
     "it is now so: {}", "no longer so, {}", "replace it, {}", "update it, {}", "rename it, {}"],
)  # fmt: skip
def test_words_of_correction(cue: str) -> None:
    """With one of them another sentence of the same matter is replaced."""
    later = cue.format("the port of billing gets 9090")
    plain = "the port of billing gets 9090"
    first = {"role": "user", "content": "The port of billing gets 8080"}
    assert extract([first, {"role": "user", "content": later}]).user[0].old_values == ("8080",)
    assert extract([first, {"role": "user", "content": plain}]).user[0].old_values == ()


def test_a_correction_must_speak_of_the_same_matter() -> None:
    """Half of what it speaks of, or so little that it can mean only what was said last."""
    first = {"role": "user", "content": "The port of billing gets 8080"}

    def old(text: str) -> tuple[str, ...]:
        return extract([first, {"role": "user", "content": text}]).user[0].old_values

    assert old("No, 9090") == ("8080",)
    assert old("No, alpha beta 9090") == ("8080",)
    assert old("No, alpha beta gamma 9090") == ()
    assert old("No, alpha beta port billing 9090") == ("8080",)
    assert old("No, alpha beta gamma port billing 9090") == ()


def test_a_correction_reaches_back_to_the_sixtieth_claim() -> None:
    """And not to the one before it."""

    def old(between: int) -> tuple[str, ...]:
        texts = ["Use port 8080.", *(f"See user_{n} there." for n in range(between))]
        said = [{"role": "user", "content": text} for text in [*texts, "No, use port 9090."]]
        return extract(said).user[0].old_values

    assert (old(59), old(60)) == (("8080",), ())


# ---------------------------------------------------------------- last words, stale words


def test_the_last_words_are_the_first_sentence_that_says_something() -> None:
    """Twelve characters with a letter in them; a long one is cut."""

    def said(text: str) -> list[str]:
        (passage,) = passages([{"role": "assistant", "content": text}])
        return [note.text for note in last_words(passage)]

    assert said("Done.\n123456789012345\nI mended it all.\nAnd more of it.") == ["I mended it all."]
    assert said("a2345678901\nb23456789012") == ["b23456789012"]
    assert said("Done.") == []
    assert said("x" * 300) == ["x" * 300]
    assert said("x" * 301) == ["x" * 299 + "…"]
    facts = Facts(last_words=(Note("I mended it all.", 1), Note("Not this one.", 2)))
    assert [n.text for n in missing(facts, "So: I mended  it all.").last_words] == ["Not this one."]


def test_a_question_decides_nothing_and_a_colon_announces() -> None:
    """Their words of decision are not noted."""
    (passage,) = passages(
        [{"role": "assistant", "content": "Is it because of X? We chose these:\nIt is because A."}]
    )
    assert [note.text for _, note in notes(passage)] == ["It is because A."]


def test_a_value_is_stale_before_the_words_that_replaced_it() -> None:
    """As a word of its own; the later of two replacements counts; longer values are seen first."""
    facts = Facts(
        user=(
            Said(0, "a", superseded_by="b", superseded_at=4, old_values=("8080", "8080-x")),
            Said(1, "a", superseded_by="c", superseded_at=7, old_values=("8080",)),
            Said(2, "a", old_values=("7070",)),
        )
    )
    stale = Stale(facts)
    assert stale.holds("port 8080.", 6)
    assert not stale.holds("port 8080.", 7)
    assert stale.holds("8080-x", 3)
    assert not stale.holds("8080-x", 4)
    assert not stale.holds("18080 or 80801", 0)
    assert not stale.holds("7070", 0)
    assert not Stale(Facts()).holds("8080", 0)
    assert stale.without([Note("8080", 1), Note("other", 1)]) == [Note("other", 1)]


def test_the_line_that_shows_an_outcome_is_cut_out_whole() -> None:
    """First, last, or in between."""
    assert outcome_of("a 3 failed b\nnext").detail == "a 3 failed b"
    assert outcome_of("first\na 3 failed b").detail == "a 3 failed b"
    assert outcome_of("first\na 3 failed b\nlast").detail == "a 3 failed b"
    assert outcome_of("first\na 3 passed b\nlast").detail == "a 3 passed b"


# ---------------------------------------------------------------- choices


def count(text: str) -> int:
    """A token for four characters."""
    return len(text) // 4


def plainly(excerpts: list[Excerpt], weights: dict[str, float], room: float) -> float:
    """What the plain way covers: every clause is weighed anew before each choice."""
    chooser = Chooser(excerpts, dict(weights), count)
    open_to_choice = set(range(len(excerpts)))
    covered: set[str] = set()
    while room > OVERHEAD and open_to_choice:
        parts = {position: chooser._best_part(position) for position in open_to_choice}
        position = max(parts, key=lambda at: parts[at][2])
        text, keys, worth = parts[position]
        cost = count(text) + OVERHEAD
        if worth <= LEAST_WORTH:
            break
        if cost > room:
            open_to_choice.discard(position)
            continue
        room -= cost
        covered |= keys
        chooser._take(position, text, keys, 0.0)
    return sum(weights[key] for key in covered)


@pytest.mark.parametrize("seed", range(12))
def test_the_quick_choice_covers_as_much_as_the_plain_one(seed: int) -> None:
    """To a twentieth: clauses are weighed anew only when they lead."""
    chance = random.Random(seed)
    names = [f"name_{n:02d}{'x' * chance.randint(0, 9)}" for n in range(40)]
    weights = {name: chance.random() ** 2 for name in names}
    excerpts = []
    for index in range(60):
        keys = chance.sample(names, chance.randint(1, 4))
        filling = [
            chance.choice(("broken", "parsers", "handler", "lookups", "servers")) for _ in range(12)
        ]
        words = [word for key in keys for word in (*chance.sample(filling, 3), key)]
        excerpts.append(Excerpt(index, "call", " ".join(words), tuple(keys)))
    for room in (30, 90, 200):
        chooser = Chooser(excerpts, dict(weights), count)
        chooser.spend(room)
        covered = {key for item in chooser.chosen() for key in item.keys}
        assert sum(weights[key] for key in covered) >= 0.95 * plainly(excerpts, weights, room)
        assert count(" ".join(item.text for item in chooser.chosen())) <= room


def test_nothing_is_given_back_for_nothing() -> None:
    """And no more than is asked for, whole choices at a time, the last one first."""
    excerpts = [
        Excerpt(n, "call", f"mend name_{n} of the broken server", (f"name_{n}",)) for n in range(3)
    ]
    chooser = Chooser(excerpts, {"name_0": 0.9, "name_1": 0.5, "name_2": 0.1}, count)
    chooser.spend(100)
    cost = count(chooser.chosen()[2].text) + OVERHEAD
    chooser.give_back(0)
    assert [item.index for item in chooser.chosen()] == [0, 1, 2]
    chooser.give_back(cost)
    assert [item.index for item in chooser.chosen()] == [0, 1]
    chooser.give_back(0.1)
    assert [item.index for item in chooser.chosen()] == [0]


def test_another_name_comes_before_a_second_mention() -> None:
    """Once bound, a name keeps a small part of its worth."""
    messages = [
        {"role": "assistant", "content": "The broken parser reads order_file today."},
        {"role": "assistant", "content": "The slow server writes order_file again."},
        {"role": "assistant", "content": "The quick client opens other_name sometimes."},
    ]
    facts = extract(messages)
    for room in range(20, 40):
        text = details(facts, room, count)
        assert text.count("order_file") < 2 or "other_name" in text
