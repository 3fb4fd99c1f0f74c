"""What strict providers want of roles and of signed thinking, learned from their refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given

from praison_compressor.praisonai.provider_rules import ROLES, alternating, refused_in
from praison_compressor.testing import Reply, Rules, check_messages
from tests.helpers.hosting import ANTHROPIC, agent, at_home, context
from tests.helpers.provider import strict_provider
from tests.helpers.transcripts import step, transcripts

USER = {"role": "user", "content": "Ask."}
SAYS = {"role": "assistant", "content": "So."}
SYSTEM = {"role": "system", "content": "Be brief."}

REFUSALS = (
    "Unexpected role 'user' after role 'tool'",
    "Unexpected role RoleEnum.user after RoleEnum.tool",
    "After the optional system message, conversation roles must alternate user and assistant roles "
    "except for tool calls and results.",
    "Conversation roles must alternate user/assistant/user/assistant/...",
    'messages: roles must alternate between "user" and "assistant"',
    "After the (optional) system message(s), user or tool message(s) should alternate with "
    "assistant message(s).",
)


@pytest.mark.parametrize("words", REFUSALS)
def test_a_refused_order_is_recognized(words: str) -> None:
    """In the words of Mistral, of chat templates, of Anthropic and Perplexity."""
    assert refused_in(ValueError(words)) == ROLES


CASES: list[list[dict[str, Any]]] = [
    [USER, *step("a", "x"), USER],
    [SYSTEM, USER, USER, *step("a", "x"), *step("b", "y"), USER, SAYS, USER],
    [SYSTEM, SAYS, USER, SAYS, *step("a", "x"), SAYS, SAYS],
    [USER, SAYS, *step("a", "x"), USER],
    [USER, *step("a", "x"), SAYS, *step("b", "x"), USER],
]


@pytest.mark.parametrize("messages", CASES)
@pytest.mark.parametrize("rules", [Rules(alternate=True), Rules(answered_results=True)])
def test_the_view_is_as_each_strict_provider_wants_it(
    messages: list[dict[str, Any]], rules: Rules
) -> None:
    """One view for both rules."""
    check_messages(alternating(messages), rules)


@given(transcripts(max_turns=4))
def test_no_word_is_lost(messages: list[dict[str, Any]]) -> None:
    """Results stay in order, behind their calls; what is alternating stays as it is."""
    view = alternating(messages)
    check_messages(view, Rules(alternate=True, answered_results=True))
    results = [m for m in messages if m["role"] == "tool"]
    assert [m for m in view if m["role"] == "tool"] == results
    assert alternating(view) == view


def test_thinking_that_a_provider_refuses_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A history with thinking of another prompt costs one refusal, not the agent."""
    with (
        strict_provider(rules=Rules(bound_thinking=True)) as provider,
        at_home(monkeypatch, tmp_path, provider) as host,
    ):
        host.answer_with(lambda asked: Reply("Yes.", thinking="Hm, why not?"))
        body = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 2_000,
            "messages": [USER],
            "thinking": {"type": "enabled", "budget_tokens": 1_024},
        }
        content = httpx.post(f"{host.base_url}/messages", json=body, timeout=30).json()["content"]
        made = agent(host, ANTHROPIC, context(host))
        made.chat_history = [
            USER,
            {"role": "assistant", "content": "Yes.", "thinking_blocks": content[:1]},
        ]
        answers = [made.chat(f"Question {n}?") for n in range(3)]
    assert answers == ["Yes."] * 3
    assert len(host.refused) == 1
    assert "bound to a different conversation" in str(host.refused[0].error)
