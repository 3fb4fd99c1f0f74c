"""`install()` changes the host only where asked, and `uninstall()` restores it."""

import contextlib
import re
from typing import Any

import pytest
from praisonaiagents import Agent, ExecutionConfig
from praisonaiagents.context.models import ContextConfig, OptimizerStrategy

from praison_compressor import install, uninstall
from praison_compressor.praisonai import HostMoved, installed
from praison_compressor.praisonai.patches import (
    IN_OTHER_PACKAGES,
    NEW,
    READ,
    REPLACED,
    ReadNames,
    probe,
)
from praison_compressor.testing import Worker
from tests.helpers.hosting import (
    EVERY_PATH,
    MODES,
    OPENAI,
    PATHS,
    agent,
    context,
    look_up,
    numbered,
    turn,
)
from tests.helpers.processes import ROOT
from tests.helpers.provider import strict_provider

uninstall()  # another module of tests may have made a `CompressorContext`
PLACES = probe()[0]  # of the host without us
ESSENTIAL = [place for place in PLACES if not place.row.part and place.row.kind != NEW]
LEFT_OUT = [place for place in PLACES if place.row.part and place.row.kind != NEW]


def everything() -> dict[str, Any]:
    """Return the patched owners' own dictionaries."""
    holders = {place.holder for place in PLACES}
    return {f"{kind.__qualname__}.{k}": v for kind in holders for k, v in vars(kind).items()}


def name_of(place: Any) -> str:
    return str(place.row.name)


@pytest.fixture
def clean():
    """Leave no installation before and after the test."""
    uninstall()
    yield
    uninstall()


def test_the_page_lists_what_is_replaced():
    """docs/host.md lists each replaced or added name, and what is left out without it."""
    page = (ROOT / "praison_compressor" / "docs" / "host.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (`\w+\.\w+`[^|]*) \| [^|]+ \| ([^|]+) \| [^|]+ \|$", page, re.M)
    shown = [
        (name, added, left)
        for names, left in lines
        for name, added in re.findall(r"`([^`]+)`( \(added\))?", names)
    ]
    rows = [
        (f"{row.owner.partition(':')[2]}.{row.name}", " (added)" * (row.kind == NEW), left)
        for row in (*REPLACED, *IN_OTHER_PACKAGES)
        for left in [f"left out: {row.part}" if row.part else "`HostMoved`"]
    ]
    assert shown == rows


@pytest.mark.parametrize("place", ESSENTIAL, ids=name_of)
def test_a_moved_name_is_refused(clean, monkeypatch, place):
    """A host without a name that we replace is refused unchanged."""
    monkeypatch.delattr(place.holder, place.row.name)
    before = everything()
    with pytest.raises(HostMoved, match=rf"{place.row.name}\b"):
        install()
    assert everything() == before
    assert installed() is None


@pytest.mark.parametrize("place", LEFT_OUT, ids=name_of)
def test_a_missing_optional_name_is_left_out_and_logged(clean, monkeypatch, caplog, place):
    """Only the part of a missing optional name is left out, with one log line."""

    async def moved(self: Any, *args: Any) -> None:
        """Be of another kind."""

    moved.__module__ = "praisonaiagents.workflows"
    monkeypatch.setattr(place.holder, place.row.name, moved)
    made = install()
    assert list(made.lacking) == [place.row.part]
    others = [row.name for row in REPLACED if row is not place.row]
    assert [name for _, name, *_ in made.patches][: len(others)] == others
    (line,) = [each.getMessage() for each in caplog.records if each.name.endswith("install")]
    assert place.row.name in line
    assert place.row.part in line


@pytest.mark.parametrize(
    ("part", "outcome"), [("", pytest.raises(HostMoved, match=r"_no_such_name\b")), ("X", None)]
)
def test_a_moved_name_that_is_only_read_is_named(part, outcome):
    """Without a name that we read the host is refused, or a part is left out."""
    more = ReadNames("agent.agent:Agent", "_no_such_name", part)
    with outcome or contextlib.nullcontext():
        assert list(probe(reads=(*READ, more))[1]) == [part]


def test_uninstall_puts_every_object_back(clean):
    """`uninstall` restores every replaced object, however often `install` was called."""
    before = everything()
    first = install()
    during = everything()
    replaced = {f"{place.holder.__qualname__}.{place.row.name}" for place in PLACES} & before.keys()
    assert {key for key in before if during[key] is not before[key]} == replaced
    assert install() is first
    again = everything()
    assert [key for key in during if again[key] is not during[key]] == []
    uninstall()
    after = everything()
    assert after.keys() == before.keys()
    assert [key for key in before if after[key] is not before[key]] == []


def test_a_patch_of_somebody_else_survives(clean, monkeypatch):
    """After `uninstall` another library's wrapper stays without our effect."""
    mixin = next(place.holder for place in PLACES if place.row.name == "chat")
    monkeypatch.setattr(mixin, "chat", mixin.chat)  # put back by monkeypatch at the end
    install()
    ours = mixin.chat

    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        return ours(self, *args, **kwargs)

    mixin.chat = theirs
    uninstall()
    assert mixin.chat is theirs
    made = Agent(instructions="x", context="summarize", output="silent")
    assert getattr(made, "context_compressor", "gone") == "gone"


def test_an_agent_goes_back_to_the_host(host):
    """The host's compaction is off until `uninstall`."""
    first = ExecutionConfig(context_compaction=True, max_iter=7)
    made = agent(host, OPENAI, context(host), execution=first)
    made.chat(turn(0))
    assert (made.execution.context_compaction, made.execution.max_iter) == (False, 7)
    later = made.execution = ExecutionConfig(context_compaction=True)
    made.chat(turn(1))
    assert made.execution.context_compaction is False
    uninstall()
    assert made.execution is later
    assert (first.context_compaction, later.context_compaction) == (True, True)


def test_a_turn_whose_requests_pass_us_by_says_so(host, caplog):
    """A turn whose requests pass us by is logged once."""
    made = agent(host, OPENAI, context(host))
    made.chat(turn(0))
    assert "no request passed" not in caplog.text
    client = next(place for place in PLACES if place.row.name == "async_client")
    with pytest.MonkeyPatch.context() as patch:  # over before `uninstall` puts the host's back
        patch.setattr(client.holder, "async_client", client.original)
        assert made.chat(turn(1)) is not None
        made.chat(turn(2))
    assert caplog.text.count("no request passed the compressor") == 1


# ---------------------------------------------------------------- agents that did not ask

OTHERS: dict[str, Any] = {
    "unset": None,
    "off": False,
    "on": True,
    "sliding window": "sliding_window",
    "smart": ContextConfig(strategy=OptimizerStrategy.SMART),
    "truncate in a dictionary": {"strategy": OptimizerStrategy.TRUNCATE},
}


def bodies(path: str, mode: str, asked: Any) -> list[Any]:
    """Return the bodies of all requests of an agent with tools over two turns."""
    with strict_provider(Worker(1, arguments=numbered), window=200_000) as provider:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_BASE_URL", provider.base_url)
            patch.setenv("OPENAI_API_BASE", provider.base_url)
            made = agent(
                provider,
                path,
                asked,
                tools=[look_up],
                execution=ExecutionConfig(max_iter=20, max_tool_calls_per_turn=50),
            )
            MODES[mode](made, [turn(0), turn(1)])
        return [record.body for record in provider.requests]


NOT_ASKING = [
    *((path, "chat", asked) for path in PATHS for asked in OTHERS),
    *((path, mode, "on") for path in EVERY_PATH for mode in ("achat", "iter_stream")),
]


@pytest.mark.parametrize(("path", "mode", "asked"), NOT_ASKING)
def test_agents_that_did_not_ask_send_the_same_bytes(host, path, mode, asked):
    """Every request body is the same with and without our installation."""
    ours = bodies(path, mode, OTHERS[asked])
    uninstall()
    assert ours == bodies(path, mode, OTHERS[asked])
    assert len(ours) >= 2
