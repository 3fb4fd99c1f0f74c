"""Facts as records: what a text still holds of them, merging, storing, defaults."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest

from praison_compressor.facts import (
    CommandFact,
    Domain,
    ErrorFact,
    Excerpt,
    Facts,
    FileFact,
    Identifier,
    Note,
    Said,
    Todo,
    coverage,
    extract,
    missing,
)
from praison_compressor.facts.files import Ledger
from praison_compressor.facts.model import shifted
from praison_compressor.facts.programs import Effect
from praison_compressor.facts.rendering import render
from praison_compressor.facts.sections import Line


def test_what_a_text_holds_is_counted_by_kind() -> None:
    """And what it lacks is what is missing, record for record."""
    facts = Facts(
        messages=10,
        user=(Said(0, "use port 9090"), Said(1, "never push")),
        files=(FileFact("src/app/a.py", "read", "cat", 1), FileFact("b.py", "read", "cat", 1)),
        commands=(CommandFact("make all", "ok", "", 1),),
        errors=(ErrorFact("e" * 90, 1),),
        decisions=(Note("we chose it", 1),),
        open_work=(Note("next is b", 1),),
        todos=(Todo("fix it", "pending", 1),),
        identifiers=(Identifier("order_id", "symbol", named=5),),
        excerpts=(Excerpt(1, "call", "see order_id", ("order_id",)),),
    )
    text = f"use  port\n9090, app/a.py, make all, {'e' * 80}, order_id"
    lacking = missing(facts, text)
    assert [item.text for item in lacking.user] == ["never push"]
    assert [item.path for item in lacking.files] == ["b.py"]
    assert (lacking.commands, lacking.errors, lacking.identifiers, lacking.excerpts) == (
        (), (), (), (),
    )  # fmt: skip
    assert (len(lacking.decisions), len(lacking.open_work), len(lacking.todos)) == (1, 1, 1)
    found = coverage(facts, text)
    assert found.by_kind == {
        "user": (1, 2), "files": (1, 2), "commands": (1, 1), "errors": (1, 1),
        "decisions": (0, 1), "open_work": (0, 1), "todos": (0, 1), "identifiers": (1, 1),
    }  # fmt: skip
    assert (found.covered, found.total, found.share) == (5, 10, 0.5)
    assert coverage(Facts(), "x").share == 1.0
    assert missing(facts, "order_id").excerpts == ()
    assert missing(facts, "other_id").excerpts == facts.excerpts
    short_names = Facts(files=(FileFact("a.b", "read", "x", 1), FileFact("ab.c", "read", "x", 1)))
    assert [item.path for item in missing(short_names, "xa.bx xab.cx").files] == ["a.b"]


DEPLOY = "make deploy ENV=staging"


@pytest.mark.parametrize(
    ("text", "outcome", "told"),
    [
        (f"{DEPLOY} succeeded.", "failed", False),
        (f"{DEPLOY} was run.", "failed", False),
        (f"Ran {DEPLOY}; tests failed.", "failed", False),
        (f"{DEPLOY} did not fail.", "failed", False),
        (f"{DEPLOY} failed first.\nThen {DEPLOY} passed.", "failed", False),
        (f"`{DEPLOY}` failed with exit 2.", "failed", True),
        (f"Failed: {DEPLOY}", "failed", True),
        (f"{DEPLOY} -> exit code 2", "failed", True),
        (f"{DEPLOY} ist fehlgeschlagen", "failed", True),
        (f"{DEPLOY} was run.", "ok", True),
        (f"{DEPLOY} passed, 0 errors.", "ok", True),
        (f"{DEPLOY} failed.", "ok", False),
        ("All was deployed.", "ok", False),
    ],
)
def test_a_fact_is_told_only_where_its_outcome_is(text: str, outcome: str, told: bool) -> None:
    """A text that names a command and has not, or otherwise, what came of it lacks the fact."""
    facts = Facts(commands=(CommandFact(DEPLOY, outcome, "exit 2: denied", 1),))
    assert (missing(facts, text).commands == ()) is told


def test_a_failed_edit_and_an_open_step_are_told_as_such() -> None:
    """The name alone, or with the opposite beside it, is not enough."""
    facts = Facts(
        files=(FileFact("src/a.py", "edited", "patch", 1, ok=False),),
        todos=(Todo("Mend the queue", "pending", 1), Todo("Read the log", "completed", 1)),
    )
    lacking = missing(facts, "src/a.py was edited. Mend the queue: done. Read the log: done.")
    assert (lacking.files, lacking.todos) == (facts.files, facts.todos[:1])
    lacking = missing(facts, "The edit of src/a.py failed. Next: Mend the queue. Read the log.")
    assert (lacking.files, lacking.todos) == ((), ())


def test_facts_of_two_segments_become_one() -> None:
    """Places move up by what came before, counts add, the last word wins."""
    one = Facts(
        messages=4,
        user=(Said(0, "Use port 8080."),),
        files=(FileFact("a", "edited", "x", 1, {"edited": 1}),
               FileFact("b", "created", "x", 1, {"created": 1}),
               FileFact("c", "deleted", "x", 1, {"deleted": 1})),
        commands=(CommandFact("make", "failed", "no", 1, runs=2),),
        errors=(ErrorFact("e", 1, "", 2),),
        decisions=(Note("d", 1),),
        open_work=(Note("o", 1),),
        todos=(Todo("t", "pending", 1),),
        identifiers=(Identifier("id_1", "symbol", 1, 2, 3, 4, 5, first=1, last=2, spread=3,
                                crowd=4),),
        excerpts=(Excerpt(1, "call", "see id_1", ("id_1",)),),
        patterns={"k": "x"},
    )  # fmt: skip
    two = Facts(
        messages=3,
        user=(Said(1, "No, use port 9090."),),
        files=(FileFact("a", "read", "y", 0, {"read": 2}),
               FileFact("b", "created", "y", 0, {"created": 1}),
               FileFact("c", "created", "y", 0, {"created": 1}),
               FileFact("d", "read", "y", 0, {"read": 1}),
               FileFact("e", "edited", "y", 0, {}, ok=False)),
        commands=(CommandFact("make", "ok", "yes", 2), CommandFact("ls", "ok", "", 2)),
        errors=(ErrorFact("e", 2, "mended"), ErrorFact("f", 2)),
        decisions=(Note("d", 2),),
        open_work=(Note("p", 2),),
        identifiers=(Identifier("id_1", "symbol", 10, 20, 30, 40, 50, first=0, last=1, spread=5,
                                crowd=2), Identifier("id_2", "id", first=1, last=2)),
        excerpts=(Excerpt(2, "call", "see id_1", ("id_1",)), Excerpt(2, "user", "x", ())),
        patterns={"m": "y"},
    )  # fmt: skip
    both = one.merge(two)
    assert both.messages == 7
    assert (both.user[0].superseded_at, both.user[1].index) == (5, 5)
    assert [(f.path, f.action, dict(f.counts), f.index) for f in both.files] == [
        ("a", "edited", {"edited": 1, "read": 2}, 1),
        ("b", "edited", {"created": 2}, 4),
        ("c", "created", {"deleted": 1, "created": 1}, 4),
        ("d", "read", {"read": 1}, 4),
        ("e", "edited", {}, 4),
    ]
    assert [(c.text, c.outcome, c.runs, c.index) for c in both.commands] == [
        ("make", "ok", 3, 6), ("ls", "ok", 1, 6),
    ]  # fmt: skip
    assert [(e.text, e.times, e.index) for e in both.errors] == [("e", 3, 6), ("f", 1, 6)]
    assert ([n.index for n in both.decisions], [n.index for n in both.open_work]) == ([6], [1, 6])
    assert both.todos == one.todos
    assert both.identifiers[0] == Identifier(
        "id_1", "symbol", 11, 22, 33, 44, 55, first=1, last=5, spread=8, crowd=2
    )
    assert (both.identifiers[1].first, both.identifiers[1].last) == (5, 6)
    assert [(e.index, e.source) for e in both.excerpts] == [(6, "call"), (6, "user")]
    assert both.patterns == {"k": "x", "m": "y"}
    assert both.merge(Facts(todos=(Todo("n", "done", 0),))).todos == (Todo("n", "done", 7),)


def test_what_facts_are_worth_is_not_used_up_by_a_summary() -> None:
    """It is worked out once for all who ask: the next text is as good, and counted the same."""
    facts = Facts(
        messages=4,
        files=(FileFact("src/app/order_file.py", "edited", "Edit", 1),),
        identifiers=(Identifier("app/order_file.py", "path", named=1),),
        excerpts=(
            Excerpt(1, "call", "Edit src/app/order_file.py to sort", ("app/order_file.py",)),
        ),
    )
    before = dict(facts.worth)
    first = render(facts, budget_tokens=400, count=len)
    assert "## Files" in first
    assert "## Details" in first
    assert dict(facts.worth) == before
    assert render(facts, budget_tokens=400, count=len) == first


def test_a_record_stands_further_on() -> None:
    """All its places move, and nothing else."""
    said = Said(1, "x", superseded_by="y", superseded_at=3)
    assert shifted(said, 10) == Said(11, "x", superseded_by="y", superseded_at=13)
    assert shifted(Said(1, "x"), 10) == Said(11, "x")
    assert shifted(said, 0) is said


def test_facts_come_back_whole_from_json() -> None:
    """Unknown keys of a later version are left out; what is missing is empty."""
    facts = extract(
        [
            {"role": "user", "content": "Use port 8080. Always lint."},
            {"role": "user", "content": "No, use port 9090 in order_file."},
        ]
    )
    written = json.loads(json.dumps(facts.to_json()))
    written["user"][0]["later_key"] = 1
    written["later_kind"] = []
    assert Facts.from_json(written) == facts
    assert Facts.from_json({}) == Facts()
    assert not Facts(messages=3, patterns={"a": "b"})
    assert Facts(todos=(Todo("t", "pending", 1),))


def test_records_are_values() -> None:
    """None of them can be changed, and their defaults say nothing happened."""
    records = (
        Said(0, "x"), FileFact("a", "read", "x", 0), CommandFact("a", "ok", "", 0),
        ErrorFact("e", 0), Note("n", 0), Todo("t", "s", 0), Identifier("i", "id"),
        Excerpt(0, "user", "x"), Facts(), coverage(Facts(), ""), Domain(),
    )  # fmt: skip
    for record in records:
        with pytest.raises(FrozenInstanceError):
            record.index = 1  # type: ignore[union-attr,misc]
    said, file, command, error, *_ = records
    assert (said.standing, said.pasted, said.old_values) == (False, 0, ())  # type: ignore[union-attr]
    assert (file.target, file.ok) == ("", True)  # type: ignore[union-attr]
    assert (command.runs, command.kind) == (1, "command")  # type: ignore[union-attr]
    assert (error.followed_by, error.times) == ("", 1)  # type: ignore[union-attr]


def test_what_begins_like_a_long_command_is_that_command() -> None:
    """Eighty characters are enough to recognise it."""
    facts = Facts(commands=(CommandFact("c" * 90, "ok", "", 0),))
    assert missing(facts, "d " + "c" * 80 + " d").commands == ()
    assert missing(facts, "d " + "c" * 79 + " d").commands == facts.commands


def test_records_say_by_default_that_nothing_is_known() -> None:
    """An identifier that was seen once, alone, at the beginning."""
    plain = Identifier("i", "id")
    assert (plain.named, plain.bodies, plain.user, plain.assistant, plain.results) == (0,) * 5
    assert (plain.first, plain.last, plain.spread, plain.crowd) == (0, 0, 1, 1)
    assert (Line(1, "x").group, Excerpt(0, "user", "x").keys) == ("", ())
    ledger = Ledger()
    ledger.add(Effect("a", "edited", "x"), 3)
    assert ledger.facts() == (FileFact("a", "edited", "x", 3, {"edited": 1}),)
