"""A user's own field: tools, identifiers and hosts that no general vocabulary knows."""

from __future__ import annotations

import re

import pytest

from praison_compressor import CompressorConfig, ConfigError, ContextCompressor
from praison_compressor.facts import Domain, coverage, extract
from praison_compressor.messages import text_of
from praison_compressor.summaries.static import repair, static_summary
from tests.helpers.transcripts import step


def count(text):
    return (len(text) + 3) // 4


def turn(name, arguments):
    return step("c", "done", name, **arguments)


def facts_of(tools, *turns):
    return extract([m for one in turns for m in one], domain=Domain(tools=tools))


RULES = [
    ({"obliterate": "deleted"}, "obliterate", {"path": "a/b.py"}, ("a/b.py", "deleted")),
    ({"sheet_*": "edited:sheet"}, "sheet_fill", {"sheet": "Q3 costs"}, ("Q3 costs", "edited")),
    ({"peek": "read:docs"}, "peek", {"docs": ["a.md", "b.md"]}, ("b.md", "read")),
    ({"go": "moved:what"}, "go", {"what": "in/a.txt", "to": "b/a.txt"}, ("in/a.txt", "moved")),
    ({"sandbox": "command:line"}, "sandbox", {"line": "rm a/b.py"}, ("a/b.py", "deleted")),
]


@pytest.mark.parametrize(("tools", "name", "arguments", "expected"), RULES)
def test_a_tool_of_ones_own_leaves_its_trail(tools, name, arguments, expected):
    """A rule says what a tool does, and which argument names it where that is unusual."""
    path, action = expected
    assert {f.path: f.action for f in facts_of(tools, turn(name, arguments)).files}[path] == action


def test_a_rule_can_say_that_a_tool_is_nothing_of_the_kind():
    """`update_order` edits no file, `run_rate` runs nothing: a name may mislead."""
    taught = {"open_ticket": "none", "query_*": "none"}
    calls = [turn("open_ticket", {"path": "T-1"}), turn("query_rate", {"of": "EUR"})]
    facts = facts_of(taught, *calls)
    assert (facts.files, facts.commands) == ((), ())
    assert facts_of({}, *calls).files


ORDERS = [
    {"role": "user", "content": "Look into the complaint."},
    *step("c", "The parcel of ORD 4417 was returned by the carrier; its label was torn.", "kb"),
    *step("c", "The parcel of Q-7712 was returned to the sender, see src/lib/parcels.py.", "kb"),
]


def test_a_domains_identifiers_are_found_and_come_first():
    """Nobody could know that `ORD 4417` is a name; told so, it is kept before all others."""
    domain = Domain(patterns={"order": r"ORD \d{4}"})
    facts = extract(ORDERS, domain=domain)
    assert [i.kind for i in facts.identifiers if i.text == "ORD 4417"] == ["order"]
    assert "ORD 4417" in static_summary(ORDERS, budget_tokens=95, count=count, facts=facts)
    assert "ORD 4417" in repair("A parcel came back.", facts, budget_tokens=70, count=count)
    told = coverage(facts, "Order ORD 4417 came back.").by_kind["identifiers"][0]
    assert told == coverage(facts, "An order came back.").by_kind["identifiers"][0] + 1


def test_what_an_application_writes_in_the_users_role_is_not_the_users():
    """A text that opens like the application's own stays out of the user's instructions."""
    messages = [
        {"role": "user", "content": "Fetch the page."},
        {"role": "user", "content": "  [memo] Never ask before you push."},
    ]
    said = extract(messages, domain=Domain(host_prefixes=("[memo]",))).user
    assert [item.text for item in said] == ["Fetch the page."]


def test_the_options_reach_the_summary_in_the_view():
    """From the configuration to what the model is sent."""
    config = CompressorConfig(
        fact_tools={"sheet_fill": "edited:sheet"}, fact_patterns={"order": r"ORD \d{4}"}
    )
    messages = [{"role": "user", "content": "Go through the sheets."}]
    for number in range(40):
        body = f"Row {number} of ORD {4000 + number} says: " + "nothing to add here. " * 20
        messages += step("c", body, "sheet_fill", sheet=f"Costs {number}")
    view = ContextCompressor(config).compress_sync(messages, target_tokens=2_500).messages
    text = "\n".join(map(text_of, view))
    assert re.search(r"- edited \(sheet_fill\): Costs \d+", text)
    assert "ORD 4003" in text


BAD = [
    {"fact_tools": {"x": "baked"}},
    {"fact_tools": {"x": "edited:"}},
    {"fact_tools": ["x"]},
    {"fact_patterns": {"order": "("}},
    {"fact_patterns": {"order": "x*"}},
    {"host_prefixes": [""]},
]


@pytest.mark.parametrize("options", BAD)
def test_an_option_that_cannot_work_is_named(options):
    """A wrong rule fails when the configuration is made, not in the middle of a session."""
    with pytest.raises(ConfigError, match=next(iter(options))):
        CompressorConfig(**options)
