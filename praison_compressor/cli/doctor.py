"""`doctor`: what can be wrong with an installation, each thing tried, and what to do about it."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Annotated

import typer

from ..config import CompressorConfig
from ..errors import CompressorError
from ..messages.display import one_line
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits
from .options import ForModel, Place, Window, Writer, command, config_of, default_store
from .terminal import FOUND_FAULT, Answer, Table, number, unlogged

OK, NOTE, FAIL = "ok", "note", "fail"

STYLES = {OK: "green", NOTE: "yellow", FAIL: "red"}


@command
def doctor(
    writer: Writer,
    place: Place,
    for_model: ForModel = None,
    window: Window = None,
    agent: Annotated[
        bool, typer.Option("--agent", help="Also let an agent work, before a local provider.")
    ] = False,
) -> Answer:
    """Check the host, the tokenizer, the window, the store and the model that writes summaries.

    Exit code 1 when something that is configured does not work.
    """
    config = config_of(
        writer,
        model=for_model,
        context_window=window,
        store_url=place.store,
        namespace=place.namespace,
    ).with_environment()
    with unlogged():  # what a check finds is in its line
        checks = [check(config) for check in (*CHECKS, *([_agent] if agent else []))]
    works = all(check.state != FAIL for check in checks)
    rows = [
        (check.name, check.state, check.found + (f" -> {check.remedy}" if check.remedy else ""))
        for check in checks
    ]
    table = Table(("", "", "found"), rows, [STYLES[check.state] for check in checks])
    value = {"works": works, "checks": checks}
    return Answer(value, [table], code=0 if works else FOUND_FAULT)


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found, and what to do about it."""

    name: str
    state: str
    """ "ok", "note" (works, but worth knowing) or "fail"."""
    found: str
    remedy: str = ""


def _package(config: CompressorConfig) -> Check:
    from .. import __version__

    python, litellm = platform.python_version(), version("litellm")
    found = f"praison-compressor {__version__}, litellm {litellm}, Python {python}"
    return Check("package", OK, found)


def _host(config: CompressorConfig) -> Check:
    """Every place of the host that is built on, by replacing it and putting it back."""
    name = "host"
    try:
        found = f"praisonaiagents {version('praisonaiagents')}"
        from ..praisonai import install, installed, uninstall

        before = installed()
        made = install()
        seams = len(made.patches)
        if before is None:
            uninstall()
    except PackageNotFoundError:
        return Check(name, FAIL, "praisonaiagents is not installed", "pip install praisonaiagents")
    except (CompressorError, ImportError) as error:
        return Check(name, FAIL, str(error), "pip install --upgrade praison-compressor")
    if made.lacking:
        parts = "; ".join(f"{part} ({reason})" for part, reason in made.lacking.items())
        remedy = "the rest works; pip install --upgrade praison-compressor"
        return Check(name, NOTE, f"{found}: left out: {parts}", remedy)
    return Check(name, OK, f"{found}: all {seams} places that are replaced are there")


def _agent(config: CompressorConfig) -> Check:
    """The demonstration's agent on the installed host, by each of its two ways to send: that the
    places are there does not say that every request still passes them."""
    from .demo.agent import Demo

    name, ways = "agent", {False: "OpenAI's client", True: "litellm"}
    for by_litellm, way in ways.items():
        try:
            turns = list(Demo(static=True, by_litellm=by_litellm).turns())
        except Exception as error:  # a host in an unknown state
            found = f"by {way}: {type(error).__name__}: {one_line(str(error))}"
            return Check(name, FAIL, found, "pip install --upgrade praison-compressor")
        sent = [each for turn in turns for each in turn.sent]
        refused = sum(each.refused is not None for each in sent)
        is_compressed = any(each.done == "summarized" for each in sent)
        forgotten = any("no longer know" in turn.answer for turn in turns)
        if refused or forgotten or not is_compressed:
            found = f"by {way}: {len(sent)} requests seen, {refused} refused"
            why = "something was forgotten" if forgotten else "not compressed"
            remedy = "pip install --upgrade praison-compressor"
            return Check(name, FAIL, found + ("" if refused else f", {why}"), remedy)
    return Check(name, OK, f"one worked past its window by {' and by '.join(ways.values())}")


def _plugin(config: CompressorConfig) -> Check:
    if entry_points(group="praisonai.plugins", name="praison-compressor"):
        where = "PRAISONAI_PLUGINS or .praisonai/config.yaml"
        return Check("plugin", OK, f"registered; the host loads it where {where} asks")
    found = "not registered with the host: only code switches it on, as CompressorContext does"
    remedy = "install the package with pip, for the host's configuration to find it"
    return Check("plugin", NOTE, found, remedy)


def _tokens(config: CompressorConfig) -> Check:
    name = "tokenizer"
    tokens = TokenCounter(config.model)
    model = config.model or "no model named"
    try:
        tokens.text("one two three")
    except (CompressorError, OSError, ValueError) as error:
        return Check(name, FAIL, one_line(str(error)), "pip install --force-reinstall tiktoken")
    if tokens.exact:
        return Check(name, OK, f"{model}: counted with {tokens.source}")
    corrected = "counts are corrected by what the provider reports"
    remedy = corrected if config.model else "--for-model names it"
    return Check(name, NOTE, f"{model}: {tokens.source}", remedy)


def _window(config: CompressorConfig) -> Check:
    limits = model_limits(config.model, config.context_window)
    found = f"{number(limits.window)} tokens ({limits.source})"
    if limits.guessed:
        remedy = "set context_window" if config.model else "--for-model names the model"
        return Check("window", NOTE, found, remedy)
    return Check("window", OK, found)


def _store(config: CompressorConfig) -> Check:
    before, default = "", default_store(config)
    if config.store_url is None:
        before = "memory; of an agent whose host keeps its session: "
        if not default.exists():
            found = f"{before}{default}, not made yet (--store URL for another)"
            return Check("store", OK, found)
    try:
        with Place(store=config.store_url).open(new=True) as store:
            store.check()
            count = len(store.sessions(config.namespace))
            found = f"{store.place}: {number(count)} sessions in namespace {config.namespace!r}"
    except (CompressorError, ImportError) as error:
        remedy = "mend it, move the file away, or start the database"
        return Check("store", FAIL, before + one_line(str(error)), remedy)
    return Check("store", OK, before + found)


def _auxiliary(config: CompressorConfig) -> Check:
    """One small question to the model, as a summary would be asked for."""
    name, model = "summaries", config.auxiliary_model
    if model is None:
        found = "static outside an agent; in one its own model writes them (--model to try)"
        return Check(name, OK, found)
    from ..summaries.litellm_client import LiteLLMSummarizer
    from ..summaries.threads import run

    summarizer = LiteLLMSummarizer(
        model, api_base=config.auxiliary_api_base, api_key=config.auxiliary_api_key
    )
    started = time.monotonic()
    asks = [{"role": "user", "content": "Answer with the one word: ready"}]
    seconds = config.timeout_seconds
    try:
        reply = run(summarizer.summarize(asks, max_tokens=64, timeout_seconds=seconds))
    except CompressorError as error:
        kind = "auth" if "api_key" in str(error) else getattr(error, "kind", "provider")
        return Check(name, FAIL, one_line(str(error)), _REMEDIES.get(kind, "see the message"))
    if not reply.text.strip():
        return Check(name, NOTE, f"{model}: answered nothing", "try another")
    return Check(name, OK, f"{model}: answered in {time.monotonic() - started:.1f} s")


_REMEDIES = {
    "auth": "set the provider's key in the environment, such as OPENAI_API_KEY",
    "quota": "wait, or see to the account; until then summaries are static",
    "timeout": "a faster model, or a longer timeout_seconds",
    "network": "is --api-base right, and the network there?",
    "context": "a model with a larger window",
    "provider": "is the model's name right, and --api-base?",
}

CHECKS = (_package, _host, _plugin, _tokens, _window, _store, _auxiliary)
"""In the order in which one leans on the other."""
