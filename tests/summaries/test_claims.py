"""Names that stand nowhere are marked, how marks look, and what a fold carries on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from praison_compressor import TokenCounter
from praison_compressor.config import Event
from praison_compressor.facts import extract
from praison_compressor.messages import Message, text_of
from praison_compressor.summaries.claims import unverified
from praison_compressor.summaries.protocol import Brief
from praison_compressor.summaries.validation import (
    MOST_MARKS,
    marked,
    marks_of,
    ungrounded,
    unmarked,
)
from praison_compressor.view.frame import unframe
from tests.helpers.compressing import compressor
from tests.helpers.transcripts import session, step, transcripts
from tests.summaries.test_writer import Paid, brief, write

ASKED = "Why does invoice_total in src/billing/invoice.py give 0.00 for order ORD-4417?"
SOURCE: list[Message] = [
    {"role": "user", "content": ASKED},
    *step(
        "c1",
        "def invoice_total(lines):\n    port = 8443",
        file="src/billing/invoice.py",
        note="beside\nrounding.py",
        revision="9fceb02",
    ),
]


def briefed(**changes: object) -> Brief:
    return brief(SOURCE, **changes)


@pytest.mark.parametrize(
    "made",
    [
        "7be1d2a",
        "https://billing.example/api/v2/pulls/31",
        "billing@example.org",
        "ORD-4471",
        "ORD-441",
        "totals.py",
        "voice.py",
        "9443",
        "`sumLines`",
        "sumLines()",
        "sum_of_lines",
        "123e4567-e89b-12d3-a456-426614174000",
    ],
)
def test_a_name_that_stands_nowhere_is_found(made: str) -> None:
    """Whatever the agent could act upon: a file, a hash, an address, a port, a function."""
    text = f"The total of ORD-4417 is wrong since {made} in src/billing/invoice.py."
    assert ungrounded(text, briefed()) == [made.strip("`()")]


@pytest.mark.parametrize(
    "text",
    [
        "Revision 9fceb02 of src/billing/invoice.py was read, for ORD-4417.",
        "The first line of rounding.py.",
        "invoiceTotal and Invoice_Total are the `invoice_total` of the task.",
        "billing/invoice.py and invoice.py listen on 8443.",
        "A 10-minute look at a 3-step plan, in JavaScript on GitHub, on 2026-11-22.",
        "The either/or of src/billing and lib/billing.",
    ],
)
def test_what_was_shown_and_what_is_no_name_is_not(text: str) -> None:
    """Other spellings, shorter paths, counts of things, products and dates are a writer's own."""
    assert ungrounded(text, briefed()) == []


def test_the_view_and_earlier_summaries_are_known_too() -> None:
    """A model may name what the head, the tail, or a summary that stays has."""
    text = "See notes.md, plan.md and todo.md."
    assert ungrounded(text, briefed()) == ["notes.md", "plan.md", "todo.md"]
    known = briefed(visible="open notes.md", folded=("plan.md is next",), earlier=("todo.md",))
    assert ungrounded(text, known) == []


TOOLS = [{"type": "function", "function": {"name": "export_ledger", "parameters": {
    "type": "object", "properties": {"vault_key": {"type": "string"}}}}}]  # fmt: skip


def test_a_name_of_the_originals_is_never_doubted() -> None:
    """Wherever it stands: in what an earlier summary left out, a label, or a tool's schema."""
    talk = session(60)
    talk[11:11] = [{"role": "user", "name": "anna_b", "content": "See early_notes.md, ORD-7781."}]
    known = "`anna_b`: early_notes.md, ORD-7781, `export_ledger(vault_key)`"
    order = "All modules and parts so far are in order"
    answers = [f"{order}.", f"{order}, port V-0040; {known}, no.py."]
    subject = compressor(lambda _: answers.pop(0), context_window=20_000)
    results = [subject.compress_sync(talk[:end], session_id="s", tools=TOOLS) for end in (240, 400)]
    assert [len(result.segments) for result in results] == [1, 2]
    assert [[d.reason for d in result.unverified] for result in results] == [
        [],
        [MADE.format("no.py")],
    ]


MADE = "{} is not in the originals"


def checked(text: str, given: Brief) -> str:
    """The text as the summary has it."""
    return marked(text, unverified(text, given, extract(given.messages)))


def test_a_doubt_is_not_laid_by_saying_it_again() -> None:
    """A later model repeats what an earlier one made up: that is no source."""
    earlier = checked("Fixed in totals.py and in invoice.py.", briefed())
    assert (
        earlier == f"Fixed in totals.py and in invoice.py. [unverified: {MADE.format('totals.py')}]"
    )
    assert ungrounded("totals.py is done.", briefed(earlier=(earlier,))) == ["totals.py"]
    assert ungrounded("invoice.py is done.", briefed(folded=(earlier,))) == []
    found = briefed(earlier=(earlier,), visible="cat totals.py")
    assert ungrounded("totals.py is done.", found) == []


def test_a_copied_mark_gives_way_to_its_own() -> None:
    """A model that carries an earlier summary on may copy its marks with it."""
    earlier = checked("Fixed in totals.py.", briefed())
    again = unmarked(f"{earlier}\nAnd in sums.py.")
    assert again == "Fixed in totals.py.\nAnd in sums.py."
    found = checked(again, briefed(folded=(earlier,)))
    assert [mark for _, mark in marks_of(found)] == [
        f"[unverified: {MADE.format(name)}]" for name in ("totals.py", "sums.py")
    ]


def test_the_most_harmful_come_first_and_many_marks_are_too_many() -> None:
    """An order and a hash are acted upon before a function's name; a domain's own before all."""
    text = "`sumLines` in totals.py, fixed by 7be1d2a for ORD 4471"
    found = ungrounded(text, briefed(), {"order": r"ORD \d{4}"})
    assert found == ["ORD 4471", "7be1d2a", "totals.py", "sumLines"]
    many = "\n".join(f"- See file{n}.py" for n in range(2 * MOST_MARKS))
    assert len(marks_of(checked(many, briefed()))) == MOST_MARKS
    code = "```\nopen('totals.py')\n```"
    assert checked(code, briefed()) == f"{code}\n\n[unverified: {MADE.format('totals.py')}]"


@given(transcripts())
def test_no_name_of_a_transcript_is_ever_doubted(messages: list[Message]) -> None:
    """Every identifier that its facts have, said again, is in it."""
    text = "\n".join(f"`{item.text}`" for item in extract(messages).identifiers)
    assert ungrounded(text, brief(messages)) == []


@settings(max_examples=15)
@given(transcripts())
def test_any_text_is_checked(messages: list[Message]) -> None:
    """Whatever is claimed: the marks can be taken out again, and checking twice finds the same."""
    text = "\n".join(text_of(message) for message in messages if message["role"] != "system")
    given = brief(messages)
    found = checked(text, given)
    assert unmarked(found) == unmarked(text)
    assert checked(text, given) == found


def test_the_summary_says_it_and_the_result_lists_it() -> None:
    """Behind the claim and above the facts that the text lacks, within the room."""
    messages = session(30)[1:]
    written = write(
        Paid("## Done\nAll modules are in order, in made_up_module.py."), brief(messages)
    )
    lines = unframe(written.message).split("\n")
    [doubt] = written.unverified
    assert (doubt.verdict, doubt.kind, doubt.reason) == (
        "unwitnessed", "name", MADE.format("made_up_module.py"))  # fmt: skip
    assert lines[1] == f"{doubt.claim} {doubt.mark}"
    assert lines[3].startswith("Facts that it lacks")
    assert TokenCounter("gpt-4o").message(written.message) <= 2_000


def test_a_fold_carries_the_doubt_on() -> None:
    """Through a whole compressor: three rounds of a model that repeats what it once made up."""
    talk = session(90, words=120)
    events: list[Event] = []
    subject = compressor(
        lambda _: "## Done\nAll modules are in order, in made_up_module.py.",
        fold_ratio=0.05,
        on_event=events.append,
    )
    results = [subject.compress_sync(talk[: 1 + 90 * n]) for n in range(1, 5)]
    told = [result for result in results if result.written]
    assert len(told) >= 3
    assert {tuple(d.kind for d in result.unverified) for result in told} == {("name",)}
    counts = [event.data["unverified"] for event in events if event.name == "committed"]
    assert counts == [1] * len(told)
    models = [s for result in results for s in result.segments if s.method == "model"]
    assert {text_of(segment.rendered).count("[unverified: ") for segment in models} == {1}
