"""An agent with tools gets the recall tools with its first compression."""

from typing import Any

import pytest

from praison_compressor import uninstall
from praison_compressor.recall.answers import READ, SCHEMAS, SEARCH
from praison_compressor.testing import Call, LocalProvider, Reply, Worker
from tests.helpers.hosting import (
    EVERY_PATH,
    MODES,
    OPENAI,
    OUTGROWING,
    PATHS,
    agent,
    chat,
    context,
    look_up,
    of_agent,
    turn,
)


class Searcher(Worker):
    """Works, and looks into the archive when the newest turn says `when`.

    Twice at most: the host sends a request after a tool twice on one path, and keeps one answer.
    """

    def __init__(self, when: str, query: str) -> None:
        super().__init__(0)
        self.when, self.query, self.searches = when, query, 0

    def __call__(self, asked: Any) -> Any:
        has = SEARCH in [tool["function"]["name"] for tool in asked.tools]
        has_searched = "call_of_the_search" in str(asked.messages)
        if has and self.when in asked.text and not has_searched and self.searches < 2:
            self.searches += 1
            return Reply(calls=(Call(SEARCH, {"query": self.query}, id="call_of_the_search"),))
        return super().__call__(asked)


def offered(provider: LocalProvider) -> list[list[str]]:
    """Return the names of the tools in each request of the agent."""
    return [[tool["function"]["name"] for tool in r.tools] for r in of_agent(provider)]


def found_by_search(provider: LocalProvider) -> list[str]:
    """Return the answers of the search, as they were sent to the model."""
    sent = [m for r in of_agent(provider) for m in r.messages if m.get("role") == "tool"]
    return [m["content"] for m in sent if m.get("tool_call_id") == "call_of_the_search"]


@pytest.mark.parametrize(
    ("path", "mode"), [*zip(EVERY_PATH, ("stream", "chat", "achat", "stream"), strict=True)]
)
def test_a_detail_of_turn_3_is_found_in_turn_30(host, path, mode):
    """By default a search in turn 30 finds a detail of turn 3."""
    host.answer_with(Searcher("Turn 29:", "L-003"))
    made = agent(host, path, context(host), tools=[look_up])
    MODES[mode](made, [turn(n) for n in range(30)])
    assert "Turn 3: look after ledger L-003. the parser" in found_by_search(host)[0]
    assert {record.status for record in of_agent(host)} == {200}


def export_ledger(year: int) -> str:
    """Export all entries of a year.

    Args:
        year: which one
    """
    return "\n".join(f"{year} entry {n}: {n * 7919 % 100_003} crowns" for n in range(13_000))


def asks_for_the_middle(asked: Any) -> Reply:
    """Export, look for an entry of the middle, read it by its reference."""
    results = [m["content"] for m in asked.messages if m["role"] == "tool"]
    search = {"query": "entry 6500", "limit": 1}
    steps = [Call("export_ledger", {"year": 1871}), Call(SEARCH, search)]
    if len(results) < 2:
        return Reply(calls=(steps[len(results)],))
    if len(results) == 2:
        reference = results[1].partition("[s")[2].partition("]")[0]
        return Reply(calls=(Call(READ, {"reference": f"s{reference}"}),))
    return Reply("Read: " + results[2])


@pytest.mark.parametrize(
    ("path", "mode"), [*zip(EVERY_PATH, ("chat", "achat", "chat", "achat"), strict=True)]
)
def test_one_giant_result_costs_no_conversation(host, path, mode):
    """A result larger than the window is archived at once and read in the same turn."""
    host.set_window(32_000)
    host.answer_with(asks_for_the_middle)
    made = agent(host, path, context(host, context_window=32_000), tools=[export_ledger])
    (answer,) = MODES[mode](made, ["How much was entry 6500 of 1871?"])
    assert "1871 entry 6500: 71958 crowns" in answer
    assert {record.status for record in host.requests} == {200}
    assert max(record.prompt_tokens for record in host.requests) < 6_000
    assert host.for_model("aux") == []
    ours = made.context_compressor
    held = ours.ledger.open("default", ours.session_id).entries
    assert [entry.segment.kind for entry in held] == ["excerpt"]
    assert held[0].segment.source_tokens > 150_000
    uninstall()
    assert made.tool_output_limit == 16_000


@pytest.mark.parametrize("path", PATHS)
def test_the_tools_come_once_with_the_first_compression(host, path):
    """An agent has each recall tool once, from its first compression to `uninstall`."""
    made = agent(host, path, context(host), tools=[look_up])
    chat(made, OUTGROWING)
    names = offered(host)
    first = next(n for n, each in enumerate(names) if SEARCH in each)
    assert first > 0
    assert {tuple(each) for each in names[:first]} == {("look_up",)}
    assert {tuple(sorted(each)) for each in names[first:]} == {("look_up", READ, SEARCH)}
    last = {tool["function"]["name"]: tool["function"] for tool in of_agent(host)[-1].tools}
    for ours in (schema["function"] for schema in SCHEMAS):
        properties = last[ours["name"]]["parameters"]["properties"]
        for name, each in ours["parameters"]["properties"].items():
            assert properties[name]["description"] == each["description"]
    uninstall()
    assert made.tools == [look_up]


@pytest.mark.parametrize("tools", [None, [look_up]], ids=["no tools", "recall off"])
def test_an_agent_without_tools_or_recall_gets_no_recall_tools(host, tools):
    """An agent without tools or recall has neither recall tools nor a word of them."""
    asked = context(host, recall=None if tools is None else False)
    made = agent(host, OPENAI, asked, tools=tools)
    chat(made, OUTGROWING)
    assert made.context_compressor.context_status == "summarized"
    assert SEARCH not in str(offered(host))
    assert READ not in str([record.messages for record in of_agent(host)])


def search_conversation_archive(query: str) -> str:
    """Do what the user's own tool does.

    Args:
        query: what to look for
    """
    return "mine: " + query


def read_conversation_archive(reference: str) -> str:
    """Do what the user's own tool does."""
    return reference


OWN = [search_conversation_archive, read_conversation_archive]


@pytest.mark.parametrize(
    ("own", "given"),
    [([OWN[0]], [READ]), (OWN, [])],
    ids=["of one", "of both"],
)
def test_an_agents_own_tool_of_that_name_stays(host, caplog, own, given):
    """A user's tool replaces the recall tool of its name, with one log line."""
    made = agent(host, OPENAI, context(host), tools=[look_up, *own])
    chat(made, OUTGROWING)
    assert made.tools[: 1 + len(own)] == [look_up, *own]
    assert [tool.__name__ for tool in made.tools[1 + len(own) :]] == given
    assert caplog.text.count("is kept; the recall tool of that name is not given") == len(own)


def test_a_resumed_session_has_the_tools_at_once(host, tmp_path):
    """An agent that resumes a session has the recall tools in its first request."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    first = agent(host, OPENAI, context(host, store_url=url), tools=[look_up])
    chat(first, OUTGROWING)
    second = agent(host, OPENAI, context(host, store_url=url), tools=[look_up])
    second.context_compressor.resume(first.context_compressor.session_id)
    before = len(of_agent(host))
    host.answer_with(Searcher("Which ledger", "L-003"))
    second.chat("Which ledger was the first?")
    assert SEARCH in offered(host)[before]
    assert len(found_by_search(host)) >= 1


def test_a_clone_reads_its_own_session_alone(host):
    """Nothing of its original's archive is in a clone's reach."""
    made = agent(host, OPENAI, context(host), tools=[look_up])
    chat(made, OUTGROWING)
    assert len(made.tools) == 3
    clone = made.clone_for_channel()
    host.answer_with(Searcher("Anything", "L-003"))
    clone.chat("Anything new?")
    assert clone.tools == [look_up]
    assert found_by_search(host) == []
    assert len(made.tools) == 3
