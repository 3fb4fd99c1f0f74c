"""The lines of each section of a summary, most valuable first."""

from __future__ import annotations

from dataclasses import replace

from praison_compressor.facts import (
    CommandFact,
    ErrorFact,
    Excerpt,
    Facts,
    FileFact,
    Identifier,
    Note,
    Said,
    Todo,
)
from praison_compressor.facts.commands import with_failing
from praison_compressor.facts.corrections import Stale
from praison_compressor.facts.details import details
from praison_compressor.facts.rendering import (
    Section,
    commands_section,
    decisions_section,
    errors_section,
    files_section,
    fitted,
    now_section,
    read_section,
    render,
    user_section,
)


def text_of(section: Section) -> list[str]:
    """The lines, most valuable first."""
    return [line.text for line in section.lines]


def test_the_users_words_are_ranked() -> None:
    """Rules and what replaced what first, then what was typed, newest first, then pastes."""
    facts = Facts(
        user=(
            Said(0, "old request"),
            Said(1, "always lint", standing=True),
            Said(2, "use 8080", superseded_by="use 9090", superseded_at=4, old_values=("8080",)),
            Said(3, "pasted", pasted=1),
            Said(3, "deep paste", pasted=2),
            Said(4, "use 9090"),
            Said(5, "old request"),
            Said(6, "hidden words"),
        )
    )
    assert text_of(user_section(facts, "some hidden words here")) == [
        "use 9090",
        "use 8080 (superseded later: 8080 no longer holds)",
        "always lint",
        "old request",
        "pasted",
        "deep paste",
    ]
    orders = [line.order for line in user_section(facts).lines]
    assert sorted(orders) == [1, 2, 3, 4, 5, 6, 7]


def test_how_things_stand_comes_first() -> None:
    """What is being done, what is next, what still fails, the newest words, what is done."""
    facts = Facts(
        todos=(Todo("a", "completed", 1), Todo("b", "in_progress", 1), Todo("c", "pending", 1),
               Todo("d", "cancelled", 1), Todo("e", "active", 1)),
        commands=(CommandFact("make", "failed", "boom", 2, still_fails=True),),
        last_words=(Note("I looked.", 5),),
        open_work=(Note("old note", 3), Note("new note", 4)),
    )  # fmt: skip
    section = now_section(facts, Stale(facts.user))
    assert text_of(section) == [
        "b", "e", "c", "make: boom [2]", "I looked. [5]", "new note [4]", "a", "d",
    ]  # fmt: skip
    assert fitted(section, 1_000, len) == (
        "## Now\n- doing: b; e\n- next: c\n- still fails: make: boom [2]\n"
        "- said: I looked. [5]\n- said: new note [4]\n- done: a; d\n"
    )
    same = Facts(last_words=(Note("x", 1),), open_work=(Note("x", 1),))
    assert text_of(now_section(same, Stale(same.user))) == ["x [1]"]


def test_a_command_still_fails_until_a_like_one_worked() -> None:
    """By the program it runs in the end; the two newest; searches and silent ones are none."""

    def failing(*commands: tuple[str, str]) -> list[str]:
        made = tuple(CommandFact(text, how, "why", n) for n, (text, how) in enumerate(commands))
        return [item.text for item in reversed(with_failing(made)) if item.still_fails]

    assert failing(("frob a", "failed"), ("frob b", "ok")) == []
    assert failing(("make test", "failed"), ("make lint", "ok")) == ["make test"]
    assert failing(("make b", "ok"), ("make a", "failed")) == ["make a"]
    assert failing(("make a", "failed"), ("make a -j", "failed")) == ["make a -j"]
    assert failing(("pytest tests/a.py::x", "failed"), ("pytest -q tests/", "ok")) == []
    assert failing(("pytest -q", "failed"), ("pytest tests/a.py", "ok")) == ["pytest -q"]
    assert failing(("a", "failed"), ("b", "failed"), ("c", "failed")) == ["c", "b"]
    assert failing(("cd x && CI=1 make a | tail", "failed"), ("make a", "ok")) == []
    assert failing(("make a", "failed"), ("make a | grep x", "ok")) == []
    assert failing(("make a", "failed"), ("make a && rm x", "ok")) == []
    assert failing(("make a", "failed"), ("make a; rm x", "ok")) == ["make a"]
    assert failing(("make a", "failed"), ("make a || rm x && ls", "ok")) == ["make a"]
    assert failing(("A=1", "failed")) == ["A=1"]
    silent = (CommandFact("a", "failed", "", 0), CommandFact("b", "failed", "x", 1, kind="search"))
    assert with_failing(silent) == silent


def test_older_words_with_a_value_that_was_taken_back_are_not_told() -> None:
    """Decisions, notes and clauses from before the correction; the same words after it are."""
    said = Said(0, "use 8080", superseded_by="use 9090", superseded_at=4, old_values=("8080",))
    facts = Facts(
        user=(said,),
        decisions=(Note("we chose 8080", 3), Note("we keep 8080", 4), Note("we chose 18080", 2)),
        last_words=(Note("port 8080 it is", 3),),
        identifiers=(Identifier("order_id", "symbol", worth=0.5),),
        excerpts=(Excerpt(3, "assistant", "order_id at 8080", ("order_id",)),),
        messages=9,
    )
    assert text_of(decisions_section(facts, Stale(facts.user))) == [
        "[2] we chose 18080",
        "[4] we keep 8080",
    ]
    assert text_of(now_section(facts, Stale(facts.user))) == []
    assert details(facts, 200, len) == ""
    kept = replace(facts, user=())
    assert len(text_of(decisions_section(kept, Stale(kept.user)))) == 3
    assert "order_id" in details(kept, 200, len)


def test_files_commands_errors_and_decisions_are_lines() -> None:
    """The last thing done and how often, outcomes, what followed; newest first."""
    facts = Facts(
        files=(
            FileFact("src/x/a.py", "read", "cat", 1, {"read": 3}),
            FileFact("b.py", "edited", "Edit", 2, {"edited": 2}),
            FileFact("c.py", "moved", "mv", 3, {"moved": 1}, target="d.py"),
            FileFact("e.py", "created", "tee", 4, {}, ok=False),
            FileFact("f.py", "listed", "x", 9, {"listed": 1}),
            FileFact("g.py", "read", "cat", 0, {"read": 1}),
        ),
        commands=(
            CommandFact("make", "ok", "done", 1),
            CommandFact("grep x", "ok", "found", 2, kind="search"),
            CommandFact("pytest", "failed", "1 failed", 3),
        ),
        errors=(ErrorFact("e1", 1), ErrorFact("e2", 2, "I mend it")),
        decisions=(Note("d1", 1), Note("d2", 2)),
    )
    assert fitted(files_section(facts, Stale(())), 1_000, len) == (
        "## Files\n- listed (x): f.py\n- created (tee), failed: e.py\n- moved (mv): c.py to d.py\n"
        "- edited (Edit): b.py ×2\n"
    )
    assert fitted(read_section(facts, Stale(())), 1_000, len) == (
        "## Files read\n- read (cat): x/a.py ×3, g.py\n"
    )
    assert text_of(commands_section(facts, Stale(facts.user))) == [
        "[3] pytest -> failed: 1 failed",
        "[1] make -> ok: done",
    ]
    assert text_of(errors_section(facts, Stale(facts.user))) == [
        "[2] e2 (then: I mend it)",
        "[1] e1",
    ]
    assert text_of(decisions_section(facts, Stale(facts.user))) == ["[2] d2", "[1] d1"]


def test_however_many_files_were_read_later_the_changed_ones_stand() -> None:
    """Whatever was done to them: what became of a file is what peers forget first."""
    for action in ("edited", "created", "moved", "deleted", "odd"):
        read = (FileFact(f"docs/note_{n}.md", "read", "x", n) for n in range(9, 300))
        facts = Facts(files=(FileFact("src/old.py", action, "x", 1), *read))
        text = render(facts, budget_tokens=200, count=lambda text: len(text) // 3)
        assert f"- {action} (x): src/old.py" in text
