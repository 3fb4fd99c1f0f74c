"""The host's configuration switches the plugin on: entry point, environment, file."""

import json
import os
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents.config import loader

from praison_compressor import CompressorConfig
from praison_compressor.cli.doctor import run_check
from praison_compressor.praisonai import plugin
from tests.helpers.processes import ROOT, install_plugin, own_environment, python

NAME = "praison-compressor"

SAY = """
import json
from praisonaiagents import Agent

def asked(context):
    agent = Agent(instructions="x", context=context, output="silent")
    found = getattr(agent, "context_compressor", None)
    return None if found is None else {
        "auxiliary_model": found.config.auxiliary_model,
        "protect_last_n_tokens": found.config.protect_last_n_tokens,
    }
"""


@pytest.fixture
def elsewhere(tmp_path):
    """Return a folder with our entry point as an installed package has it."""
    install_plugin(tmp_path)
    return tmp_path


def paths(folder: Path) -> str:
    """Return where a process finds the package of `elsewhere`."""
    return os.pathsep.join([str(folder / "site"), str(ROOT)])


def ran(folder: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script that ends well."""
    done = called(folder, "-c", textwrap.dedent(script), **environment)
    assert done.returncode == 0, done.stderr
    return done


def called(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own: the host loads plugins once in a process."""
    variables = {"PYTHONPATH": paths(folder), "HOME": str(folder), **environment}
    return python(*words, folder=folder, environment=own_environment(**variables))


def heard(folder: Path, script: str, **environment: str) -> Any:
    """Return the JSON value in the last line that a script prints."""
    done = ran(folder, SAY + textwrap.dedent(script), **environment)
    return json.loads(done.stdout.strip().splitlines()[-1])


def configured(folder: Path, text: str) -> None:
    """Write the host's file in that folder."""
    (folder / ".praisonai").mkdir()
    (folder / ".praisonai" / "config.yaml").write_text(textwrap.dedent(text))


DEFAULT = {"auxiliary_model": None, "protect_last_n_tokens": 20_000}


@pytest.mark.parametrize(
    "environment",
    [
        {"PRAISONAI_PLUGINS": "something_else"},
        {"PRAISONAI_PLUGINS": "praison-compressor", "PRAISONAI_NO_PLUGINS": "1"},
    ],
    ids=["another", "forbidden"],
)
def test_the_plugin_is_off_unless_it_is_named(elsewhere, environment):
    """The plugin is off, without a hint, where it is not named or plugins are forbidden."""
    done = ran(elsewhere, SAY + 'print(asked("summarize"))', **environment)
    assert done.stdout.strip().splitlines()[-1] == "None"
    assert "did you mean" not in done.stderr


def test_the_plugin_can_be_switched_off_and_on_again(elsewhere):
    """Only an enabled plugin compresses an agent."""
    script = """
        from praisonaiagents import plugins
        agent = Agent(instructions="x", context="summarize", output="silent")
        states = [agent.context_compressor is not None]
        plugins.disable(["praison-compressor"])
        states.append(agent.context_compressor is not None)
        plugins.enable(["praison-compressor"])
        agent = Agent(instructions="x", context="summarize", output="silent")
        states.append(agent.context_compressor is not None)
        print(json.dumps(states))
    """
    said = heard(elsewhere, script, PRAISONAI_PLUGINS="praison-compressor")
    assert said == [True, False, True]


def test_the_hosts_own_commands_switch_it_on_and_off(elsewhere):
    """`praisonai plugins enable` and `disable` switch the plugin with its options."""
    pytest.importorskip("praisonai_code")
    configured(elsewhere, "plugins: {praison-compressor: {protect_last_n_tokens: 77}}")
    commands = f"""
        from praisonai_code.cli.commands.plugins import app
        app(["add", "{NAME}", "--dry-run"], standalone_mode=False)
        app(["%s", "{NAME}"], standalone_mode=False)
    """
    done = ran(elsewhere, commands % "enable")
    assert "Discovered 1 plugin(s)" in done.stdout
    assert heard(elsewhere, "print(json.dumps(asked(None)))")["protect_last_n_tokens"] == 77
    ran(elsewhere, commands % "disable")
    assert heard(elsewhere, "print(json.dumps(asked(None)))") is None


PROPOSED = ROOT / "praison_compressor" / "docs" / "upstream" / "plugins" / "context_compressor.py"


def test_the_module_for_the_host_registers_one_plugin(monkeypatch, caplog):
    """The module that `docs/upstream` proposes registers one plugin, with and without us."""
    assert runpy.run_path(str(PROPOSED))["plugin"] is plugin.plugin
    monkeypatch.setitem(sys.modules, "praison_compressor.praisonai.plugin", None)
    missing = runpy.run_path(str(PROPOSED))["plugin"]
    missing.on_init({})
    assert missing.info.name == NAME
    assert "pip install praison-compressor" in caplog.text


def test_without_the_hosts_functions_for_files_a_fault_names_none(monkeypatch, tmp_path):
    """Where the host has moved its functions for files, a setting's file is not named."""
    configured(tmp_path, "plugins: {praison-compressor: {}}")
    monkeypatch.chdir(tmp_path)
    assert plugin.configuration_file("plugins") == f"{tmp_path}/.praisonai/config.yaml"
    for name in ("_discover_config_files", "_parse_config_file"):
        monkeypatch.delattr(loader, name)
    assert plugin.configuration_file("plugins") == "plugins.enable()"


# ---------------------------------------------------------------- agents that say nothing

TALK = """
from praisonaiagents import Agent

def look_up(topic: str) -> str:
    "Look a topic up."
    return topic

def talk(name, words, turns, **more):
    agent = Agent(instructions=f"You are {name}.", output="silent", **more)
    for turn in range(turns):
        agent.chat(f"Turn {turn}: " + "the ledger and the order of its rows " * words)
"""


def test_an_agent_with_another_strategy_is_left_alone(elsewhere, provider):
    """The plugin compresses only agents that name no strategy."""
    configured(elsewhere, f"plugins: {{{NAME}: {{context_window: 4000, output_reserve: 500}}}}")
    script = """
        from praisonaiagents.context.models import ContextConfig
        talk("plain", 120, 6)
        talk("a-clerk", 120, 6, tools=[look_up])
        talk("on", 120, 6, context=True)
        talk("choosy", 120, 6, context={"protect_last_n_tokens": 600})
        talk("off", 120, 6, context=False)
        talk("another", 120, 6, context="sliding_window")
        talk("a-host", 120, 6, context=ContextConfig())
    """
    ran(elsewhere, TALK + textwrap.dedent(script), OPENAI_BASE_URL=provider.base_url)
    sizes = {  # of each agent's last request; a summary's has another system prompt
        name: record.prompt_tokens
        for name in ("plain", "a-clerk", "on", "choosy", "off", "another", "a-host")
        for record in provider.requests
        if f"You are {name}." in str(record.messages[0].get("content"))
    }
    compressed = {name for name, tokens in sizes.items() if tokens < 3_500}
    assert compressed == {"plain", "a-clerk", "on", "choosy"}, sizes


def test_the_environments_strategy_comes_before_the_plugins(elsewhere):
    """`PRAISONAI_CONTEXT_STRATEGY` is the strategy of agents that name none."""
    script = """
        from praisonaiagents.context import ManagerConfig
        from praisonaiagents.context.manager import ContextManager
        said = [asked(None), asked(True), asked({}), asked("summarize")]
        agent = Agent(instructions="x", output="silent")
        agent.context_manager = ContextManager(config=ManagerConfig(strategy="truncate"))
        assert agent.context_compressor is None
        print(json.dumps(said))
    """
    on = {"PRAISONAI_PLUGINS": "true", "PRAISONAI_CONTEXT_STRATEGY": "truncate"}
    assert heard(elsewhere, script, **on) == [None, None, None, DEFAULT]


def test_installing_in_code_takes_nothing_from_the_plugin(elsewhere):
    """`install()` in code leaves the plugin's agents compressed."""
    script = """
        from praison_compressor import install
        from praison_compressor.praisonai import CompressorContext
        install()
        states = [asked(None), asked(CompressorContext(auxiliary_model="aux"))["auxiliary_model"]]
        print(json.dumps([*states, asked(None)]))
    """
    assert heard(elsewhere, script, PRAISONAI_PLUGINS="true") == [DEFAULT, "aux", DEFAULT]


@pytest.mark.parametrize(
    ("switch", "text", "said"),
    [
        (
            "praison-compressor, Praison-Compresor",
            "plugins: {praison_compressor: {a: 1}, praison-compressor: {protect_last_tokens: 9}}",
            [
                "no plugin 'praison-compresor' (did you mean 'praison-compressor'?)",
                "no plugin 'praison_compressor' (did you mean",
                "no option 'protect_last_tokens' (did you mean 'protect_last_n_tokens'?)",
            ],
        ),
        ("", "plugins: {enabled: [praison_compressor]}", ["no plugin 'praison_compressor' (did"]),
        (
            "",
            "plugins: {praison-compressor: {token_floor: -1, context_window: 12k}}",
            [
                "token_floor=-1: expected a whole number, 0 or more; left out",
                "context_window='12k': expected a positive whole number; left out",
            ],
        ),
    ],
    ids=["names and an option", "in a list", "values"],
)
def test_a_misspelled_name_is_reported(elsewhere, switch, text, said):
    """A misspelled plugin or option is reported once on stderr, with the nearest name."""
    configured(elsewhere, text)
    done = ran(elsewhere, SAY + "asked(None)", PRAISONAI_PLUGINS=switch)
    assert [done.stderr.count(words) for words in said] == [1] * len(said)


def test_a_wrong_value_costs_the_other_options_nothing(elsewhere):
    """Only the wrong value of a file is left out, with a log line."""
    options = "target_ratio: lots, output_reserve: 5000, protect_last_n_tokens: 77"
    configured(elsewhere, f"plugins: {{{NAME}: {{auxiliary_model: aux, {options}}}}}")
    (elsewhere / "below").mkdir()
    own = {"strategy": "summarize", "context_window": 4_000}
    script = f"print(json.dumps(asked({own})))"
    done = called(elsewhere / "below", "-c", SAY + script, PYTHONPATH=paths(elsewhere))
    said = json.loads(done.stdout.strip().splitlines()[-1])
    assert said == {"auxiliary_model": "aux", "protect_last_n_tokens": 77}
    (fault,) = [line for line in done.stderr.splitlines() if "target_ratio" in line]
    assert "target_ratio='lots': expected a number above 0 and up to 1; left out" in fault
    assert str(elsewhere / ".praisonai" / "config.yaml") in fault
    assert "output_reserve=5000: leaves nothing of context_window=4000" in done.stderr


# ---------------------------------------------------------------- doctor


def diagnosed(folder: Path, **environment: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Return its exit code, and by check the state and the text."""
    done = called(folder, "-m", "praison_compressor", "doctor", "--json", **environment)
    checks = json.loads(done.stdout)["checks"]
    lines = {c["name"]: (c["state"], f"{c['found']} -> {c['remedy']}") for c in checks}
    return done.returncode, lines


OPTIONS = {"context_window": 20_000, "auxiliary_model": "openai/aux"}


@pytest.fixture
def checks(elsewhere, provider):
    """Return what `doctor` finds with a model and options in the host's file."""
    urls = {"auxiliary_api_base": provider.base_url, "store_url": f"{elsewhere}/by-file.db"}
    defaults = {"model": "gpt-4.1", "base_url": provider.base_url, "memory": True}
    configured(elsewhere, json.dumps({"plugins": {NAME: OPTIONS | urls}, "defaults": defaults}))
    before = sorted(elsewhere.rglob("*"))
    store = {"PRAISON_COMPRESSOR_STORE": str(elsewhere / "by-environment.db")}
    code, checks = diagnosed(elsewhere, OPENAI_BASE_URL=provider.base_url, **store)
    assert (code, sorted(elsewhere.rglob("*"))) == (0, before)
    return checks


def test_doctor_proves_that_a_plain_agent_is_compressed(checks, provider):
    """`doctor` compresses a plain agent's request with the file's options."""
    state, agents = checks["agents"]
    assert state == "ok"
    assert "that names no other strategy is compressed\nModel gpt-4.1: above 12,000" in agents
    assert "Tool steps are kept between turns" in agents
    whole, sent = re.findall(r"of ([\d,]+) tokens was sent as ([\d,]+)", agents)[0]
    assert int(whole.replace(",", "")) > 20_000 > 2 * int(sent.replace(",", ""))
    assert [record.model for record in provider.requests] == ["aux"]


def test_doctor_names_the_file_of_the_options(checks, elsewhere):
    """`doctor` names the options in use, and the file that they come from."""
    file = elsewhere / ".praisonai" / "config.yaml"
    options = [*OPTIONS, "auxiliary_api_base", "store_url"]
    state, plugin = checks["plugin"]
    assert (state, str(file) in plugin) == ("ok", True)
    assert f"switched on, with {', '.join(options)}" in plugin
    named = ", ".join(sorted([*options, "model"]))
    assert checks["options"] == ("ok", f"{named}: {file} -> ")
    assert checks["window"] == ("ok", "20,000 tokens (context_window) -> ")
    assert "gpt-4.1: counted with" in checks["tokenizer"][1]
    assert str(elsewhere / "by-file.db") in checks["store"][1]


@pytest.mark.parametrize(
    ("switch", "text", "state", "said"),
    [
        ("", "", "ok", "registered, not switched on"),
        ("praison_compressor", "", "fail", "did you mean 'praison-compressor'?"),
        ("", "plugins:\n  praison-compressor:\n", "fail", "praison-compressor: {enabled: true}"),
        ("", "plugin: {praison-compressor: {}}", "fail", "did you mean 'plugins'?"),
        ("", "plugins: {\tpraison", "fail", "no YAML or TOML that can be read"),
        ("", "plugins: {praison-compressor: {windows: 9}}", "fail", "no option 'windows'"),
    ],
)
def test_doctor_says_what_does_nothing(elsewhere, monkeypatch, switch, text, state, said):
    """`doctor` reports settings without effect, also if the host loads no plugin."""
    configured(elsewhere, text)
    monkeypatch.chdir(elsewhere)
    monkeypatch.syspath_prepend(str(elsewhere / "site"))
    for name in ("PRAISONAI_NO_PLUGINS", "PRAISONAI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(elsewhere))
    monkeypatch.setenv("PRAISONAI_PLUGINS", switch)
    found = run_check("plugin", CompressorConfig())
    assert (found.state, said in found.found) == (state, True), found


def test_doctor_says_what_a_file_without_a_mapping_must_have(elsewhere):
    """With a list under `plugins:` each failed check names the file and what is expected."""
    configured(elsewhere, "plugins: [praison-compressor]")
    code, checks = diagnosed(elsewhere)
    failed = {name: text for name, (state, text) in checks.items() if state == "fail"}
    assert (code, [*failed]) == (1, ["plugin", "agents"])
    for text in failed.values():
        assert f"{elsewhere}/.praisonai/config.yaml: plugins: ['praison-compressor']: " in text
        assert "expected a mapping; write `plugins: {praison-compressor: {enabled" in text
