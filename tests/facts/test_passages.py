"""Who said which text of a transcript: what a host or a tool says in the user's role is never
the user's word.
"""

from __future__ import annotations

import pytest

from praison_compressor.facts import extract
from praison_compressor.facts.passages import argument_values, passages, speakers


def test_who_said_what() -> None:
    """Hosts speak in the user's role too; a name is another agent's; results know their call."""
    made = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"p": "x"}'}}
    messages = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "task"},
        {"role": "user", "content": "  <system-reminder>now"},
        {"role": "user", "content": "hello", "name": "worker"},
        {"role": "user", "content": "NOTE: mine"},
        {"role": "assistant", "content": "I look.", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c", "content": '"a\\nb"'},
        {"role": "function", "name": "ls", "content": "again"},
        {"role": "user", "content": [{"type": "tool_result", "content": "old"}]},
        {"role": "assistant", "content": " "},
        {"role": "tool", "tool_call_id": "gone", "content": "orphan"},
    ]
    found = [(p.at, p.source, p.text) for p in passages(messages, ("NOTE:",))]
    assert found == [
        (0, "host", "rules"),
        (1, "user", "task"),
        (2, "host", "  <system-reminder>now"),
        (3, "host", "hello"),
        (4, "host", "NOTE: mine"),
        (5, "assistant", "I look."),
        (5, "call", "ls x"),
        (6, "result", "a\nb"),
        (7, "result", "again"),
        (8, "result", "old"),
        (10, "result", "orphan"),
    ]
    calls = [p.call.name if p.call else None for p in passages(messages) if p.source == "result"]
    assert calls == ["ls", "ls", None, None]


def test_the_values_of_arguments_are_said_in_order() -> None:
    """Strings and numbers at any depth; where to look and for how long is left out."""
    given = {"path": "a", "offset": 5, "deep": [{"n": 1.5, "ok": True}, ("x",)], "z": None}
    assert list(argument_values(given)) == ["a", "1.5", "x"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<system-reminder>\nUse tabs.\n</system-reminder>\nMake it fast.", "Make it fast."),
        ("<task>\nMake it fast.\n</task>\n\n<environment_details>\nx\n</environment_details>",
         "Make it fast."),
        ("<additional_data>\nPath: a.rb\n</additional_data>\n<user_query>\nMake it fast.\n"
         "</user_query>", "Make it fast."),
        ("<system-reminder> that never ends", None),
        ("Is <b>this</b> bold?", "Is <b>this</b> bold?"),
        ("Why does `<system-reminder>` show up?", "Why does `<system-reminder>` show up?"),
    ],
)  # fmt: skip
def test_what_hosts_put_round_the_users_words_is_taken_off(text: str, said: str | None) -> None:
    """The rest is the user's, whole."""
    assert [part for who, part in speakers(text) if who == "user"] == ([said] if said else [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[read_file for 'a]b.py'] Result:\nalways deploy", "always deploy"),
        ("EXECUTION RESULT of [execute_bash]:\nalways deploy", "always deploy"),
        ("<tool_response>\nalways deploy\n</tool_response>",
         "<tool_response>\nalways deploy\n</tool_response>"),
    ],
)  # fmt: skip
def test_a_tools_answer_in_the_users_role_is_no_word_of_the_user(text: str, told: str) -> None:
    """However it is worded: nothing in it becomes an instruction."""
    assert list(speakers(text)) == [("result", told)]
    assert extract([{"role": "user", "content": text}]).user == ()


def test_what_the_user_typed_beside_a_result() -> None:
    """In one message of parts: the result is the tool's, the text the user's."""
    parts = [
        {"type": "tool_result", "tool_use_id": "t", "content": "Always deploy."},
        {"type": "text", "text": "Always use port 9090."},
    ]
    facts = extract([{"role": "user", "content": parts}])
    assert [said.text for said in facts.user] == ["Always use port 9090."]


def test_a_call_is_led_by_whole_words() -> None:
    """The last ones said before it: half of a name would be a name that nobody wrote."""
    made = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    text = "I look at src/main_part.py" + " now" * 18
    message = {"role": "assistant", "content": text, "tool_calls": [made]}
    assert [p.lead for p in passages([message]) if p.source == "call"] == ["now" + " now" * 17]
