"""Try each part of an installation; name a remedy for each failure."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points, version
from typing import Any

import click

from ..config import KEY_VARIABLE, STORE_VARIABLE, CompressorConfig
from ..errors import CompressorError, ConfigError
from ..messages.display import one_line, pluralize
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits
from .parameters import AS_JSON, command, open_ledger, with_config
from .terminal import (
    FOUND_FAULT,
    Line,
    mute_log,
    options_as_flags,
    print_answer,
    show_progress,
)

OK, NOTE, FAIL = "ok", "note", "fail"

STATE_STYLES = {OK: "green", NOTE: "yellow", FAIL: "red"}

UPGRADE = "pip install --upgrade praison-compressor"


@dataclass(frozen=True)
class Finding:
    """The state of one part of the installation."""

    state: str
    """ "ok", "note" (works, but worth knowing) or "fail"."""
    found: str
    remedy: str = ""


@command
@with_config
@AS_JSON
def doctor(config: CompressorConfig, as_json: bool) -> None:
    """Check host, configuration, window, store and models.

    The command reads PRAISONAI_PLUGINS and .praisonai/config.yaml as the host does. Options on the
    command line override options in these files. To test compression, an agent sends a local server
    more than its window holds. The result shows which of your agents are compressed, and above how
    many tokens. Exits with code 1 when a configured part does not work.

    $ praison-compressor doctor --window 32k
    """
    # The findings repeat what would be logged.
    with mute_log(), show_progress("Checking"):
        config, sources = _effective_config(config)
        findings = {"options": sources}
        findings |= {name: run_check(name, config) for name in DOCTOR_CHECKS}
    works = all(finding.state != FAIL for finding in findings.values())
    value = {"works": works, "checks": [{"name": n, **vars(f)} for n, f in findings.items()]}
    print_answer(value, _finding_lines(findings), as_json)
    if not works:
        raise click.exceptions.Exit(FOUND_FAULT)


def run_check(name: str, config: CompressorConfig) -> Finding:
    """Return a check's finding; an expected error is a failure."""
    check, remedy = DOCTOR_CHECKS[name]
    try:
        return check(config)
    except (CompressorError, ImportError, AttributeError, OSError, ValueError) as error:
        return Finding(FAIL, one_line(str(error)), remedy)


def _finding_lines(findings: Mapping[str, Finding]) -> Iterator[Line]:
    for name, finding in findings.items():
        lines = f"{finding.state:<5}{name}: {finding.found}".split("\n")
        if finding.remedy:
            remedy = f"-> {options_as_flags(finding.remedy)}"
            lines = [*lines, remedy] if len(lines) > 1 else [f"{lines[0]} {remedy}"]
        yield Line("\n     ".join(lines), STATE_STYLES[finding.state])


# ---------------------------------------------------------------- which options hold


def _effective_config(config: CompressorConfig) -> tuple[CompressorConfig, Finding]:
    """Return the options in force, and the source of each.

    The command line overrides the host's files; the files override the environment.
    """
    defaults = vars(CompressorConfig().with_environment())
    options = {name: value for name, value in vars(config).items() if value != defaults[name]}
    sources = dict.fromkeys(options, "the command line")
    # A failure is ignored here: `_check_plugin` reports it.
    with contextlib.suppress(ImportError, AttributeError, ConfigError):
        for name, (value, file) in _host_options(options).items():
            options[name], sources[name] = value, file
    config = CompressorConfig(**options).with_environment()
    for name, variable in (("store_url", STORE_VARIABLE), ("store_key", KEY_VARIABLE)):
        if getattr(config, name) is not None:
            sources.setdefault(name, variable)
    in_order = sorted(sources, key=lambda name: (sources[name], name))
    by_source = itertools.groupby(in_order, sources.get)
    summary = "; ".join(f"{', '.join(names)}: {source}" for source, names in by_source)
    return config, Finding(OK, summary or "the defaults")


def _host_options(options: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    from ..praisonai.context_param import valid_options
    from ..praisonai.plugin import OPTION_KEYS, configuration_file, read_host_configuration

    host = read_host_configuration()
    values = dict(host.options) if host.on else {}
    files = {name: configuration_file(*OPTION_KEYS, name) for name in values}
    if host.model:
        values["model"], files["model"] = host.model, configuration_file("defaults", "model")
    # Unusable options are ignored here: `_check_plugin` reports them.
    usable, _ = valid_options({**values, **options})
    names = values.keys() & usable.keys() - options.keys()
    return {name: (values[name], files[name]) for name in names}


# ---------------------------------------------------------------- package, host, plugin


def _check_package(config: CompressorConfig) -> Finding:
    from .. import __version__

    python, litellm = platform.python_version(), version("litellm")
    return Finding(OK, f"praison-compressor {__version__}, litellm {litellm}, Python {python}")


def _check_host(config: CompressorConfig) -> Finding:
    """Try each patch of the host, and undo it."""
    from ..praisonai import install, installed, uninstall

    host = f"praisonaiagents {version('praisonaiagents')}"
    was_installed = installed() is not None
    installation = install()
    count = len(installation.patches)  # `uninstall` empties them
    if not was_installed:
        uninstall()
    if installation.lacking:
        parts = "; ".join(f"{part} ({reason})" for part, reason in installation.lacking.items())
        return Finding(NOTE, f"{host}: left out: {parts}", f"the rest works; {UPGRADE}")
    return Finding(OK, f"{host}: all {count} names that we replace exist")


def _check_plugin(config: CompressorConfig) -> Finding:
    from ..praisonai.plugin import PLUGIN, read_host_configuration

    host = read_host_configuration()
    names = os.environ.get("PRAISONAI_PLUGINS")
    sources = [f"PRAISONAI_PLUGINS={names}" if names else "no PRAISONAI_PLUGINS"]
    sources_read = ", ".join([*sources, *(host.files or ["no .praisonai/config.yaml"])])
    if host.faults:
        return Finding(FAIL, f"{'; '.join(host.faults)} ({sources_read})")
    if not entry_points(group="praisonai.plugins", name=PLUGIN):
        remedy = "install the package with pip, so that the host finds it"
        state = f"not registered with the host, so only code switches it on ({sources_read})"
        return Finding(FAIL if host.on else NOTE, state, remedy)
    options = f", with {', '.join(host.options)}" if host.options else ""
    state = f"switched on{options}" if host.on else "registered, not switched on"
    return Finding(OK, f"{state} ({sources_read})")


# ---------------------------------------------------------------- agents


def _check_agents(config: CompressorConfig) -> Finding:
    from ..praisonai.context_param import STRATEGY_VARIABLE
    from ..praisonai.plugin import read_host_configuration

    is_enabled = read_host_configuration().on
    result = _run_trial(config)
    strategy = os.environ.get(STRATEGY_VARIABLE)
    text = _trial_text(result, keeps_steps=config.keep_tool_steps)
    if result["sent"] >= result["tokens"] or result["sent"] > result["window"]:
        return Finding(FAIL, text, "report it, with this output")
    if result["compresses_all"]:
        return Finding(OK, text)
    if is_enabled and not strategy:
        return Finding(FAIL, f"{text}\nThe host did not load the plugin", result["last_line"])
    unset = f"unset {STRATEGY_VARIABLE}={strategy}"
    remedy = unset if is_enabled else "set PRAISONAI_PLUGINS=praison-compressor"
    return Finding(NOTE, text, f"{remedy} to compress every agent that names no other strategy")


def _trial_text(result: Mapping[str, Any], *, keeps_steps: bool) -> str:
    scope = "every Agent() that names no other strategy is compressed"
    if not result["compresses_all"]:
        scope = "only an Agent(context=CompressorContext()) is compressed"
    steps_note = "Tool steps are kept between turns"
    if not keeps_steps:
        steps_note = "Tool steps are dropped after a turn, as in the host (keep_tool_steps=False)"
    return (
        "{scope}\nModel {model}: above {trigger:,} of {window:,} tokens ({source})\n"
        "Trial: a conversation of {tokens:,} tokens was sent as {sent:,}\n{steps_note}"
    ).format(scope=scope, steps_note=steps_note, **result)


def _run_trial(config: CompressorConfig) -> Any:
    """Run `agent_trial` in a new process; the host reads its configuration once.

    Raises:
        ValueError: the process failed; the message is its last line.
    """
    from .demo_agent import OFFLINE

    arguments = json.dumps([config.model, config.context_window])
    environment = {**os.environ, **OFFLINE, "OPENAI_API_KEY": os.environ.get("OPENAI_API_KEY", "")}
    environment.pop(STORE_VARIABLE, None)
    command = [sys.executable, "-m", f"{__package__}.agent_trial", arguments]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    last_line = one_line((process.stderr.strip().splitlines() or ["no output"])[-1])
    if process.returncode:
        raise ValueError(last_line)
    return {**json.loads(process.stdout.strip().splitlines()[-1]), "last_line": last_line}


# ---------------------------------------------------------------- tokens, store, summaries

_NAME_IT = "--model names it"


def _check_tokenizer(config: CompressorConfig) -> Finding:
    tokens = TokenCounter(config.model)
    model = config.model or "no model named"
    tokens.text("one two three")
    if tokens.exact:
        return Finding(OK, f"{model}: counted with {tokens.source}")
    corrected = "counts are corrected by what the provider reports"
    return Finding(NOTE, f"{model}: {tokens.source}", corrected if config.model else _NAME_IT)


def _check_window(config: CompressorConfig) -> Finding:
    limits = model_limits(config.model, config.context_window)
    window = f"{limits.window:,} tokens ({limits.source})"
    if limits.guessed:
        return Finding(NOTE, window, "set context_window" if config.model else _NAME_IT)
    return Finding(OK, window)


def _check_store(config: CompressorConfig) -> Finding:
    before = "" if config.store_url else "memory; if the host stores an agent's session, "
    with open_ledger(config, allow_missing=True) as store:
        if not store.exists():  # looking must not create the file
            other = "" if config.store_url else " (--store URL for another)"
            return Finding(OK, f"{before}{store.location}, not made yet{other}")
        count = pluralize(len(store.sessions(config.namespace)), "session")
        return Finding(OK, f"{before}{store.location}: {count} in namespace {config.namespace!r}")


def _check_summaries(config: CompressorConfig) -> Finding:
    model = config.auxiliary_model
    if model is None:
        text = "static outside an agent; in an agent, the agent's model writes summaries"
        return Finding(OK, f"{text} (--auxiliary-model tries one)")
    from ..concurrency import run
    from ..summaries.litellm_client import LiteLLMSummarizer

    summarizer = LiteLLMSummarizer(
        model, api_base=config.auxiliary_api_base, api_key=config.auxiliary_api_key
    )
    started = time.monotonic()
    messages = [{"role": "user", "content": "Answer with the one word: ready"}]
    seconds = config.timeout_seconds
    try:
        reply = run(summarizer.summarize(messages, max_tokens=64, timeout_seconds=seconds))
    except CompressorError as error:
        kind = "auth" if "api_key" in str(error) else getattr(error, "kind", "provider")
        return Finding(FAIL, one_line(str(error)), _MODEL_REMEDIES.get(kind, "see the message"))
    if not reply.text.strip():
        return Finding(NOTE, f"{model}: answered nothing", "try another")
    return Finding(OK, f"{model}: answered in {time.monotonic() - started:.1f} s")


_MODEL_REMEDIES = {
    "auth": "set the provider's key in the environment, such as OPENAI_API_KEY",
    "quota": "wait, or raise the account's quota; until then summaries are static",
    "timeout": "use a faster model or raise timeout_seconds",
    "network": "check auxiliary_api_base and the network",
    "context": "use a model with a larger window",
    **dict.fromkeys(("refused", "provider"), "check the model's name and auxiliary_api_base"),
}


DOCTOR_CHECKS: dict[str, tuple[Callable[[CompressorConfig], Finding], str]] = {
    "package": (_check_package, ""),
    "host": (_check_host, UPGRADE),
    "plugin": (_check_plugin, "repair the host's configuration"),
    "agents": (_check_agents, "see the checks above"),
    "tokenizer": (_check_tokenizer, "pip install --force-reinstall tiktoken"),
    "window": (_check_window, ""),
    "store": (_check_store, "move a damaged file away; start the database"),
    "summaries": (_check_summaries, ""),
}
"""Name -> check and remedy. A check may need the checks before it."""
