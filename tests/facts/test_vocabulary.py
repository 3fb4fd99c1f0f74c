"""Every word by which facts are read, and choices compared with the plain way to make them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from praison_compressor.facts import Facts, Note, Said, extract
from praison_compressor.facts.corrections import Stale
from praison_compressor.facts.files import effects_of
from praison_compressor.facts.rendering import details
from praison_compressor.messages import ToolCall


def tool(name: str, /, **arguments: Any) -> list[tuple[str, str, str]]:
    """What a call does to files."""
    found = effects_of(ToolCall("c", name, json.dumps(arguments)))
    return [(effect.path, effect.action, effect.target) for effect in found]


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


# ---------------------------------------------------------------- last words, stale words


def test_a_value_is_stale_before_the_words_that_replaced_it() -> None:
    """As a word of its own; the later of two replacements counts; longer values are seen first."""
    facts = Facts(
        user=(
            Said(0, "a", superseded_by="b", superseded_at=4, old_values=("8080", "8080-x")),
            Said(1, "a", superseded_by="c", superseded_at=7, old_values=("8080",)),
            Said(2, "a", old_values=("7070",)),
        )
    )
    stale = Stale(facts.user)
    assert stale.marked("port 8080.", 6) == "port 8080. (superseded: 8080)"
    for text, index in (("port 8080.", 7), ("8080-x", 4), ("18080 or 80801", 0), ("7070", 0)):
        assert stale.marked(text, index) == text
    assert stale.marked("8080-x", 3) == "8080-x (superseded: 8080-x)"
    assert Stale(()).marked("8080", 0) == "8080"
    assert stale.without([Note("8080", 1), Note("other", 1)]) == [Note("other", 1)]


# ---------------------------------------------------------------- choices


def count(text: str) -> int:
    """A token for four characters."""
    return len(text) // 4


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
