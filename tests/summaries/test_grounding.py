"""Names that a model made up are said beside its summary; what it was shown never is."""

from __future__ import annotations

import pytest
from hypothesis import given

from praison_compressor import TokenCounter
from praison_compressor.facts import extract
from praison_compressor.messages import Message, text_of
from praison_compressor.summaries.protocol import Brief
from praison_compressor.summaries.validation import DOUBTS, MOST_NAMED, doubted, ungrounded
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
    assert [result.ungrounded for result in results] == [(), ("no.py",)]


def test_a_doubt_is_not_laid_by_saying_it_again() -> None:
    """A later model repeats what an earlier one made up: that is no source."""
    earlier = doubted("Fixed in totals.py and subtotals.py.", ["totals.py"])
    assert ungrounded("totals.py is done.", briefed(earlier=(earlier,))) == ["totals.py"]
    assert ungrounded("subtotals.py is done.", briefed(folded=(earlier,))) == []
    found = briefed(earlier=(earlier,), visible="cat totals.py")
    assert ungrounded("totals.py is done.", found) == []


def test_a_copied_line_gives_way_to_its_own() -> None:
    """A model that carries an earlier summary on may copy the doubts with it."""
    copied = doubted("Fixed in totals.py.", ["totals.py"])
    names = ungrounded(f"{copied}\n\nAnd in sums.py.", briefed(folded=(copied,)))
    assert names == ["totals.py", "sums.py"]
    assert doubted(copied, names).count(DOUBTS) == 1


def test_the_most_harmful_come_first_and_a_long_list_is_cut() -> None:
    """An order and a hash are acted upon before a function's name; a domain's own before all."""
    text = "`sumLines` in totals.py, fixed by 7be1d2a for ORD 4471"
    found = ungrounded(text, briefed(), {"order": r"ORD \d{4}"})
    assert found == ["ORD 4471", "7be1d2a", "totals.py", "sumLines"]
    many = [f"file{n}.py" for n in range(30)]
    assert doubted("text", many) == f"text\n\n{DOUBTS}{', '.join(many[:MOST_NAMED])}"
    assert doubted("text", []) == "text"


@given(transcripts())
def test_no_name_of_a_transcript_is_ever_doubted(messages: list[Message]) -> None:
    """Every identifier that its facts have, said again, is in it."""
    text = "\n".join(f"`{item.text}`" for item in extract(messages).identifiers)
    assert ungrounded(text, brief(messages)) == []


def test_the_summary_says_it_and_the_result_lists_it() -> None:
    """Below the model's text and above the facts that it lacks, within the room."""
    messages = session(30)[1:]
    written = write(
        Paid("## Done\nAll modules are in order, in made_up_module.py."), brief(messages)
    )
    lines = unframe(written.message).split("\n")
    assert written.ungrounded == ("made_up_module.py",)
    assert lines[3] == f"{DOUBTS}made_up_module.py"
    assert lines[5].startswith("Facts that it lacks")
    assert TokenCounter("gpt-4o").message(written.message) <= 2_000


def test_a_fold_carries_the_doubt_on() -> None:
    """Through a whole compressor: three rounds of a model that repeats what it once made up."""
    talk = session(90, words=120)
    subject = compressor(
        lambda _: "## Done\nAll modules are in order, in made_up_module.py.", fold_ratio=0.05
    )
    results = [subject.compress_sync(talk[: 1 + 90 * n]) for n in range(1, 5)]
    told = [result for result in results if result.written]
    assert len(told) >= 3
    assert {result.ungrounded for result in told} == {("made_up_module.py",)}
    models = [s for result in results for s in result.segments if s.method == "model"]
    assert {text_of(segment.rendered).count(DOUBTS) for segment in models} == {1}
