"""A real agent whose tool brings it attacks and secrets, against the strict provider."""

from __future__ import annotations

from typing import Any

import pytest
from praisonaiagents import ExecutionConfig

from praison_compressor.ledger import READ, SEARCH
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import PATHS, agent, context, of_agent, turn
from tests.hostile.attacks import CANARY, CONTROL, TOOLS, attacks
from tests.hostile.test_secrets import LEAKS, PIECES

ATTACKS = [attack.text for attack in attacks() if attack.carrier in (*TOOLS, "tool name")]
EACH = 12


def talk(host: LocalProvider, path: str, pages: list[str]) -> tuple[list[Any], list[str]]:
    """Two turns in which the agent fetches ten pages; its requests, and their summaries."""

    def fetch(page: int) -> str:
        """Fetch a page.

        Args:
            page: which
        """
        start = page * EACH % len(pages)
        return "\n".join(pages[start : start + EACH])

    numbers = iter(range(1_000))
    worker = Worker(
        10, tool="fetch", arguments=lambda name, nth: {"page": next(numbers)}, answer="Noted."
    )
    host.answer_with(worker)
    long = ExecutionConfig(max_iter=40, max_tool_calls_per_turn=99)
    ours = context(host, tool_policies={"*": "summarize"})  # read, not masked
    made = agent(host, path, ours, tools=[fetch], execution=long)
    assert [made.chat(turn(n, words=6)).strip() for n in range(2)] == ["Noted."] * 2
    assert [(r.number, r.error) for r in host.requests if r.status != 200] == []
    requests = of_agent(host)
    opened = [m for r in requests for m in r.messages if str(m["content"]).startswith("<conv")]
    assert {m["role"] for m in opened} == {"user"}
    return requests, [str(m["content"]) for m in opened]


@pytest.mark.parametrize(
    ("path", "answer"),
    [*zip(PATHS, ["", "## Done\n" + "\n".join(ATTACKS[:60])], strict=True)],
    ids=["quotes", "a model that repeats it"],
)
def test_an_attacked_agent_is_sent_its_own_instructions_and_data(
    host: LocalProvider, path: str, answer: str
) -> None:
    """On the wire: one system message, ours untouched; what attacks say is data in its frame."""
    host.route("aux", Worker(answer=answer))
    requests, summaries = talk(host, path, ATTACKS)
    systems = {str(m["content"]) for r in requests for m in r.messages if m["role"] == "system"}
    # The host names an agent's tools there: the recall tools came with the first compression.
    assert len({each.replace(f", {SEARCH}, {READ}", "") for each in systems}) == 1
    assert len(summaries) > 2
    assert CANARY not in str(systems)
    for text in summaries:
        assert text.lower().count("</conversation-summary>") == 1
        assert CONTROL.findall(text) == []
        assert text.splitlines().count("## The user said") <= 1
        section = text.partition("## The user said\n")[2].partition("\n## ")[0]
        assert CANARY not in section


def test_no_secret_of_a_tool_leaves_the_agents_provider(host: LocalProvider) -> None:
    """The auxiliary model is somebody else's: it is shown masks, and the summary has them too."""
    _, summaries = talk(host, PATHS[0], LEAKS)
    asked = "".join(str(m["content"]) for r in host.for_model("aux") for m in r.messages)
    assert "[secret:" in asked
    assert [piece for piece in PIECES if piece in asked + "".join(summaries)] == []
