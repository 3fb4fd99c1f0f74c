"""A real agent whose tool brings it attacks and secrets, against the strict provider."""

from __future__ import annotations

import re
from typing import Any

import pytest
from praisonaiagents import ExecutionConfig

from praison_compressor.testing import LocalProvider, Summarizer, Worker
from tests.helpers.hosting import LITELLM, OPENAI, agent, context, turn
from tests.hostile.attacks import CANARY, TOOLS, attacks
from tests.hostile.test_secrets import LEAKS, PIECES

ATTACKS = [attack.text for attack in attacks() if attack.carrier in (*TOOLS, "tool name")]
EACH = 12
READ = {"*": "summarize"}  # what attacks say is to be read, not masked
CONTROL = re.compile(r"<[|｜]\w{1,40}[|｜]>|\[/?(?:INST|SYSTEM_PROMPT)\]|<<SYS>>|<\w+_of_turn>")


def fetch(page: int) -> str:
    """Fetch a page.

    Args:
        page: which
    """
    start = page * EACH % len(ATTACKS)
    return "\n".join(ATTACKS[start : start + EACH])


def environment(page: int) -> str:
    """Print the environment.

    Args:
        page: which
    """
    start = page * EACH % len(LEAKS)
    return "\n".join(LEAKS[start : start + EACH])


def talk(host: LocalProvider, path: str, tool: Any, ours: Any) -> list[Any]:
    """Two turns in which the agent calls the tool ten times; the requests of the agent."""
    pages = iter(range(1_000))
    host.answer_with(Worker(10, arguments=lambda name, nth: {"page": next(pages)}, answer="Noted."))
    long = ExecutionConfig(max_iter=40, max_tool_calls_per_turn=99)
    made = agent(host, path, ours, tools=[tool], execution=long)
    assert [made.chat(turn(n, words=6)).strip() for n in range(2)] == ["Noted."] * 2
    assert [(r.number, r.error) for r in host.requests if r.status != 200] == []
    return [r for r in host.requests if r.model != "aux"]


def summaries(request: Any) -> list[dict[str, Any]]:
    """The messages of a request that open as a summary."""
    return [m for m in request.messages if str(m["content"]).startswith("<conversation-summary>")]


@pytest.mark.parametrize("path", [OPENAI, LITELLM])
@pytest.mark.parametrize(
    "answer", ["", "## Done\n" + "\n".join(ATTACKS[:60])], ids=["facts", "a model that repeats it"]
)
def test_an_attacked_agent_is_sent_its_own_instructions_and_data(
    host: LocalProvider, path: str, answer: str
) -> None:
    """On the wire: one system message, ours untouched; what attacks say is data in its frame."""
    host.route("aux", Worker(answer=answer))
    requests = talk(host, path, fetch, context(host, tool_policies=READ))
    told = [str(m["content"]) for request in requests for m in summaries(request)]
    systems = {str(m["content"]) for r in requests for m in r.messages if m["role"] == "system"}
    assert len(told) > 2
    assert len(systems) == 1
    assert CANARY not in systems.pop()
    assert {m["role"] for request in requests for m in summaries(request)} == {"user"}
    for text in told:
        assert text.lower().count("</conversation-summary>") == 1
        assert CONTROL.findall(text) == []
        lines = text.splitlines()
        assert [line for line in lines if line.startswith("## The user said")] in (
            [], ["## The user said"],
        )  # fmt: skip
        section = text.partition("## The user said\n")[2].partition("\n## ")[0]
        assert CANARY not in section


def test_no_secret_of_a_tool_leaves_the_agents_provider(host: LocalProvider) -> None:
    """The auxiliary model is somebody else's: it is shown masks, and the summary has them too."""
    host.route("aux", Summarizer(r"L-\d+"))
    requests = talk(host, OPENAI, environment, context(host, tool_policies=READ))
    asked = "".join(str(m["content"]) for r in host.for_model("aux") for m in r.messages)
    told = "".join(str(m["content"]) for request in requests for m in summaries(request))
    assert "[secret:" in asked
    assert [piece for piece in PIECES if piece in asked + told] == []
