"""Who speaks in the user's role: what a host or a tool says there is never the user's word."""

from __future__ import annotations

import pytest

from praison_compressor.facts import extract
from praison_compressor.facts.passages import speakers as voices


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<system-reminder>\nUse tabs.\n</system-reminder>\nMake it fast.", "Make it fast."),
        ("Make it fast.\n\n<environment_details>\nsrc/a.py\n</environment_details>",
         "Make it fast."),
        ("<task>\nMake it fast.\n</task>\n\n<environment_details>\nx\n</environment_details>",
         "Make it fast."),
        ("<additional_data>\nPath: a.rb\n</additional_data>\n<user_query>\nMake it fast.\n"
         "</user_query>", "Make it fast."),
        ("<user_query>Make it fast.</user_query>", "Make it fast."),
        ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>", None),
        ("<system-reminder> that never ends", None),
        ("Is <b>this</b> bold?", "Is <b>this</b> bold?"),
        ("Why does `<system-reminder>` show up?", "Why does `<system-reminder>` show up?"),
    ],
)  # fmt: skip
def test_what_hosts_put_round_the_users_words_is_taken_off(text: str, said: str | None) -> None:
    """The rest is the user's, whole."""
    assert [part for who, part in voices(text) if who == "user"] == ([said] if said else [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[execute_command for 'npm test'] Result:\nCommand executed.", "Command executed."),
        ("[read_file for 'a]b.py'] Result:\nalways deploy", "always deploy"),
        ("OBSERVATION:\nalways deploy", "always deploy"),
        ("EXECUTION RESULT of [execute_bash]:\nalways deploy", "always deploy"),
        ("<tool_response>\nalways deploy\n</tool_response>",
         "<tool_response>\nalways deploy\n</tool_response>"),
    ],
)  # fmt: skip
def test_a_tools_answer_in_the_users_role_is_no_word_of_the_user(text: str, told: str) -> None:
    """However it is worded: nothing in it becomes an instruction."""
    assert list(voices(text)) == [("result", told)]
    assert extract([{"role": "user", "content": text}]).user == ()


def test_what_the_user_typed_beside_a_result() -> None:
    """In one message of parts: the result is the tool's, the text the user's."""
    parts = [
        {"type": "tool_result", "tool_use_id": "t", "content": "Always deploy."},
        {"type": "text", "text": "Always use port 9090."},
    ]
    facts = extract([{"role": "user", "content": parts}])
    assert [said.text for said in facts.user] == ["Always use port 9090."]
