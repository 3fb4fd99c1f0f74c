"""What a text or a view holds of the facts, and what it lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from praison_compressor.facts import (
    CommandFact,
    Excerpt,
    Facts,
    FileFact,
    Identifier,
    Note,
    Said,
    Todo,
    coverage,
    missing,
)
from tests.helpers.command import runner


def test_what_a_text_holds_is_counted_by_kind() -> None:
    """And what it lacks is what is missing, record for record."""
    facts = Facts(
        messages=10,
        user=(Said(0, "use port 9090"), Said(1, "never push")),
        files=(FileFact("src/app/a.py", "read", "cat", 1), FileFact("b.py", "read", "cat", 1)),
        commands=(CommandFact("make all", "ok", "", 1),),
        errors=(Note("e" * 90, 1),),
        decisions=(Note("we chose it", 1),),
        open_work=(Note("next is b", 1),),
        todos=(Todo("fix it", "pending", 1),),
        identifiers=(Identifier("order_id", "symbol", worth=0.5),),
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


DEPLOY = "make deploy ENV=staging"


@pytest.mark.parametrize(
    ("text", "outcome", "told"),
    [
        (f"{DEPLOY} succeeded.", "failed", False),
        (f"{DEPLOY} failed first.\nThen {DEPLOY} passed.", "failed", False),
        (f"`{DEPLOY}` failed with exit 2.", "failed", True),
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


Message = dict[str, Any]


def paths(first: int, last: int) -> str:
    """So many names of files, no two alike."""
    return " ".join(f"src/module_{n}/handler_{n * 7919}.py" for n in range(first, last))


def conversation() -> list[Message]:
    """Names in the middle that the newest message repeats, and others that it does not."""
    found: list[Message] = [{"role": "user", "content": "Look through the modules."}]
    for start in range(0, 800, 20):
        found += [
            {"role": "assistant", "content": f"These are next: {paths(start, start + 20)}"},
            {"role": "user", "content": "Go on."},
        ]
    return [*found, {"role": "assistant", "content": f"Left to do: {paths(0, 150)}"}]


def test_the_command_says_what_the_view_holds(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In the table, kind by kind below it, and as JSON: a name of the newest messages is not lost
    for standing in no summary."""
    file = tmp_path / "transcript.json"
    file.write_text(json.dumps(conversation()))
    run = runner(monkeypatch, capfd)
    options = (file, "--window", 128_000, "--target", 4_500, "--keep-tokens", 4_000)
    told = run("compress", *options)
    [part] = [p for p in run("compress", *options, "--json").json["parts"] if p["facts"]]
    facts = part["facts"]
    assert 0 < facts["held"] < facts["found"]
    assert f"the view holds {facts['held']:,} of its {facts['found']:,} facts" in told.out
    files = facts["by_kind"]["identifiers"]
    assert f"identifiers {files['held']:,}/{files['found']:,}" in told.out
