"""Every way of asking for SUMMARIZE is read, and every option reaches the compressor."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.context import ManagerConfig
from praisonaiagents.context.manager import ContextManager
from praisonaiagents.context.models import ContextConfig, OptimizerStrategy

from praison_compressor import CompressorConfig, ConfigError, install, uninstall
from praison_compressor.praisonai import CompressorContext

SUMMARIZE = OptimizerStrategy.SUMMARIZE


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Our installation, and a key so that agents can be made."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    install({})
    yield
    uninstall()


def made(context: Any, **more: Any) -> Agent:
    """An agent with that `context=`."""
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
def test_every_spelling_is_understood(here: None, spelling: str) -> None:
    """The agent has a compressor, the same before and after the host made a manager of it."""
    agent = made(SPELLINGS[spelling])
    compressor = agent.context_compressor
    assert compressor is not None
    assert agent.context_manager is not None
    assert agent.context_compressor is compressor


@pytest.mark.parametrize("other", [*OTHERS])
def test_who_asks_for_something_else_gets_it(here: None, other: str) -> None:
    """No compressor."""
    assert made(OTHERS[other]).context_compressor is None


def test_the_environment_asks(here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`PRAISONAI_CONTEXT_STRATEGY` counts for `context=True`, and so for agents with tools."""
    assert made(True).context_compressor is None
    monkeypatch.setenv("PRAISONAI_CONTEXT_STRATEGY", "summarize")
    assert made(True).context_compressor is not None
    assert made(None, tools=[len]).context_compressor is not None
    assert made(None).context_compressor is None


def test_a_users_own_manager_is_left_alone(here: None) -> None:
    """A subclass of the host's manager knows its own mind."""

    class Mine(ContextManager):  # type: ignore[misc]
        pass

    mine = Mine(config=ManagerConfig(strategy=SUMMARIZE))
    agent = made(mine)
    assert agent.context_manager is mine
    assert agent.context_compressor is None


def test_asking_later_and_taking_it_back(here: None) -> None:
    """The manager that is set counts, whatever `context=` said before."""
    agent = made("summarize")
    assert agent.context_compressor is not None
    agent.context_manager = None
    assert agent.context_compressor is None
    agent.context_manager = ContextManager(config=ManagerConfig(strategy=SUMMARIZE))
    assert agent.context_compressor is not None


def test_options_that_the_host_dropped_in_a_turn_before_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The host makes nothing of a dictionary with a key of ours; `install()` may come later."""
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


def test_our_context_has_every_option() -> None:
    """Each field of `CompressorConfig` but the model, with the same default or the host's."""
    ours, theirs = dataclasses.asdict(CompressorConfig()), dataclasses.asdict(CompressorContext())
    hosts = dataclasses.asdict(ContextConfig())
    renamed = {"model", "trigger_ratio"}
    assert set(ours) - renamed <= set(theirs)
    differing = {name for name in set(ours) - renamed if ours[name] != theirs[name]}
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
    "namespace": "tenant",
}


@pytest.mark.parametrize("how", ["dictionary", "ours"])
def test_options_reach_the_compressor(here: None, how: str) -> None:
    """By a dictionary and by our context alike."""
    asked = (
        {"strategy": "summarize", **OPTIONS}
        if how == "dictionary"
        else CompressorContext(**OPTIONS)
    )
    agent = made(asked, llm="gpt-4o")
    config = agent.context_compressor.engine().config
    assert {name: getattr(config, name) for name in OPTIONS} == OPTIONS
    assert config.model == "gpt-4o"


def test_the_hosts_own_fields_are_honoured(here: None) -> None:
    """Its threshold is our trigger; its reserve and turns count where they are not its defaults."""
    asked = ContextConfig(
        strategy=SUMMARIZE, compact_threshold=0.7, output_reserve=500, keep_recent_turns=3
    )
    config = made(asked).context_compressor.config
    assert (config.trigger_ratio, config.output_reserve, config.keep_recent_turns) == (0.7, 500, 3)
    config = made(ContextConfig(strategy=SUMMARIZE)).context_compressor.config
    assert (config.trigger_ratio, config.output_reserve, config.keep_recent_turns) == (
        0.8,
        None,
        None,
    )


def test_protected_tools_are_kept(here: None) -> None:
    """The host's list of tools whose outputs stay, by whichever spelling, beside our policies."""
    asked = CompressorContext(protected_tools=["read"], tool_policies={"grep*": "summarize"})
    policies = {"read": "keep", "grep*": "summarize"}
    assert made(asked).context_compressor.config.tool_policies == policies
    given = {"protected_tools": ["read"], "tool_policies": {"grep*": "summarize"}}
    asked_so = made({"strategy": "summarize", **given})
    assert asked_so.context_compressor.config.tool_policies == policies


SOME = {"protected_tools": ["read"], "tool_policies": "keep_some"}


def test_defaults_of_the_installation(here: None) -> None:
    """They hold where an agent says nothing, and never over what it says."""
    install({"auxiliary_model": "aux", "protect_last_n_tokens": 77})
    config = made({"strategy": "summarize", "protect_last_n_tokens": 99}).context_compressor.config
    assert (config.auxiliary_model, config.protect_last_n_tokens) == ("aux", 99)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"axiliary_model": "aux"}, "axiliary_model"),
        ({"target_ratio": 7}, "target_ratio"),
        ({"tool_policies": "keep_some"}, "keep_some"),
    ],
)
def test_a_bad_option_in_a_dictionary_ends_no_turn(
    here: None, caplog: pytest.LogCaptureFixture, given: dict[str, Any], named: str
) -> None:
    """A misspelled key, or a value that cannot work, is logged, and the defaults hold."""
    config = made({"strategy": "summarize", **given}).context_compressor.config
    assert config == CompressorConfig(model=config.model, recall=False)
    assert named in caplog.text


@pytest.mark.parametrize(
    ("given", "named"), [({"target_ratio": 7}, "target_ratio"), (SOME, "keep_some")]
)
def test_a_bad_option_in_our_context_is_an_error_at_once(given: Any, named: str) -> None:
    """The constructor says what is wrong, before any turn."""
    with pytest.raises(ConfigError, match=named):
        CompressorContext(**given)


def test_the_key_is_not_shown() -> None:
    """A context is printed in logs; its key is not."""
    assert "sk-secret" not in repr(CompressorContext(auxiliary_api_key="sk-secret"))
    uninstall()


def test_the_session_is_the_agents_own(here: None) -> None:
    """The agent's session id where it has one, else a random one that no other agent shares."""
    named = made("summarize", memory={"session_id": "books-7"})
    assert named.context_compressor.session_id == "books-7"
    one, two = made("summarize"), made("summarize")
    assert one.context_compressor.session_id != two.context_compressor.session_id
