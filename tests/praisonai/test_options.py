"""Every way of asking for SUMMARIZE is read, and every option reaches the compressor."""

import dataclasses
import sys
from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.context import ManagerConfig
from praisonaiagents.context.manager import ContextManager
from praisonaiagents.context.models import ContextConfig, OptimizerStrategy

from praison_compressor import CompressorConfig, install, uninstall
from praison_compressor.praisonai import CompressorContext

SUMMARIZE = OptimizerStrategy.SUMMARIZE


@pytest.fixture
def here(monkeypatch):
    """Install us, and a key with which agents can be made."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    install({})
    yield
    uninstall()


def made(context: Any, **more: Any) -> Agent:
    """Return an agent with that `context=`."""
    return Agent(instructions="You keep the books.", context=context, output="silent", **more)


SPELLINGS: dict[str, Any] = {
    "preset": "summarize",
    "preset, written freely": " Summarize ",
    "dictionary with a string": {"strategy": "summarize"},
    "dictionary with the enum": {"strategy": SUMMARIZE},
    "dictionary with more": {"strategy": "summarize", "llm_summarize": True, "tool_output_max": 9},
    "ContextConfig": ContextConfig(strategy=SUMMARIZE),
    "ContextConfig with a string": ContextConfig(strategy="summarize"),
    "ManagerConfig": ManagerConfig(strategy=SUMMARIZE),
    "a manager": ContextManager(config=ManagerConfig(strategy=SUMMARIZE)),
    "ours": CompressorContext(),
}
OTHERS: dict[str, Any] = {
    "nothing": None,
    "off": False,
    "preset": "truncate",
    "dictionary": {"strategy": "smart"},
    "dictionary without": {"output_reserve": 100},
    "config": ContextConfig(),
    "manager": ContextManager(config=ManagerConfig(strategy=OptimizerStrategy.SMART)),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_understood(here, spelling):
    """The agent has a compressor, the same before and after the host made a manager of it."""
    agent = made(SPELLINGS[spelling])
    compressor = agent.context_compressor
    assert compressor is not None
    assert agent.context_manager is not None
    assert agent.context_compressor is compressor


@pytest.mark.parametrize("other", [*OTHERS])
def test_another_strategy_gets_no_compressor(here, other):
    """An agent with another strategy has no compressor."""
    assert made(OTHERS[other]).context_compressor is None


def test_the_environment_names_the_strategy(here, monkeypatch):
    """`PRAISONAI_CONTEXT_STRATEGY` counts for `context=True`, and so for agents with tools."""
    assert made(True).context_compressor is None
    monkeypatch.setenv("PRAISONAI_CONTEXT_STRATEGY", "summarize")
    assert made(True).context_compressor is not None
    assert made(None, tools=[len]).context_compressor is not None
    assert made(None).context_compressor is None


def test_the_compressor_follows_the_manager(here):
    """The compressor follows the manager that is set."""
    agent = made("summarize")
    assert agent.context_compressor is not None
    agent.context_manager = None
    assert agent.context_compressor is None
    agent.context_manager = ContextManager(config=ManagerConfig(strategy=SUMMARIZE))
    assert agent.context_compressor is not None


def test_options_that_the_host_dropped_are_found(monkeypatch):
    """Options of a dictionary are found, also if `install` comes after the host dropped them."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    uninstall()
    agent = made({"strategy": "summarize", "context_window": 6_000})
    other = made({"strategy": "smart", "context_window": 6_000})
    assert agent.context_manager is other.context_manager is None  # as the host looks at it
    CompressorContext()  # installs by itself
    assert agent.context_compressor.config.context_window == 6_000
    assert other.context_compressor is None
    uninstall()


# ---------------------------------------------------------------- options


def test_our_context_has_every_option():
    """`CompressorContext` has each option of `CompressorConfig` but the model."""
    ours, theirs = dataclasses.asdict(CompressorConfig()), dataclasses.asdict(CompressorContext())
    hosts = dataclasses.asdict(ContextConfig())
    assert set(ours) - {"model"} == set(ours) & set(theirs)
    differing = {name for name in set(ours) - {"model"} if ours[name] != theirs[name]}
    assert differing <= set(hosts)


OPTIONS = {
    "context_window": 9_000,
    "target_ratio": 0.5,
    "protect_last_n_tokens": 1_234,
    "auxiliary_model": "aux",
    "auxiliary_api_base": "http://127.0.0.1:1/v1",
    "auxiliary_api_key": "sk-aux",
    "fallback_models": ("b", "c"),
    "summary_instructions": "Keep the invoice numbers.",
    "pinned": ("Never push.",),
    "quotes_budget_tokens": 300,
    "namespace": "tenant",
}


HOSTS = {
    "compact_threshold": 0.7,
    "output_reserve": 500,
    "keep_recent_turns": 3,
    "protected_tools": ["read"],
    "tool_policies": {"grep*": "summarize"},
}


@pytest.mark.parametrize("how", ["dictionary", "ours"])
def test_options_reach_the_compressor(here, how):
    """Options and host fields of a dictionary or context override the installation's."""
    install({"auxiliary_model": "other", "fold_ratio": 0.3})
    given = {**OPTIONS, **HOSTS}
    asked = (
        {"strategy": "summarize", **given} if how == "dictionary" else CompressorContext(**given)
    )
    config = made(asked, llm="gpt-4o").context_compressor.for_model().config
    assert {name: getattr(config, name) for name in OPTIONS} == OPTIONS
    assert (config.model, config.fold_ratio) == ("gpt-4o", 0.3)
    assert (config.trigger_ratio, config.output_reserve, config.keep_recent_turns) == (0.7, 500, 3)
    assert config.tool_policies == {"read": "keep", "grep*": "summarize"}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"axiliary_model": "aux"}, "axiliary_model"),
        ({"target_ratio": 7}, "target_ratio"),
        ({"tool_policies": "keep_some"}, "keep_some"),
    ],
)
def test_a_bad_option_in_a_dictionary_ends_no_turn(here, caplog, given, named):
    """A bad option of a dictionary has its default, with a log line."""
    config = made({"strategy": "summarize", **given}).context_compressor.config
    assert config == CompressorConfig(model=config.model, recall=False)
    assert named in caplog.text


@pytest.mark.parametrize(
    ("options", "set_to", "limit"),
    [
        ({}, 16_000, sys.maxsize),
        ({"auto_compact": False}, 16_000, 16_000),
        ({"tool_output_max": 2_000}, 16_000, 16_000),
        ({}, 5_000, 5_000),
    ],
)
def test_the_host_cuts_results_only_at_a_users_limit(here, options, set_to, limit):
    """The host cuts results only at a user's limit, or where nothing is archived."""
    agent = made(CompressorContext(**options))
    assert agent.tool_output_limit == 16_000
    agent.tool_output_limit, body = set_to, "one word, " * 20_000
    assert agent.context_compressor is not None
    assert agent.tool_output_limit == limit
    whole = agent._truncate_tool_output("read_file", body, "call_1") == body
    assert whole is (limit == sys.maxsize)


@pytest.mark.parametrize("set_to", [16_000, 5_000])
def test_uninstall_restores_the_hosts_limit(here, set_to):
    """After `uninstall` an agent has its own limit of results again."""
    agent = made(CompressorContext())
    agent.tool_output_limit = set_to
    assert agent.context_compressor is not None
    uninstall()
    assert agent.tool_output_limit == set_to
