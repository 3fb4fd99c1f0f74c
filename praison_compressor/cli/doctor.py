"""`doctor`: what can be wrong with an installation, each thing tried, and what to do about it."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version

from ..config import CompressorConfig
from ..errors import CompressorError
from ..messages.display import one_line
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits
from .options import ForModel, Place, Window, Writer, command, config_of, default_store
from .terminal import FOUND_FAULT, Answer, Table, number, unlogged

OK, NOTE, FAIL = "ok", "note", "fail"


@command
def doctor(
    writer: Writer, place: Place, for_model: ForModel = None, window: Window = None
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
        checks = list(all_checks(config))
    works = all(check.state != FAIL for check in checks)
    rows = []
    for check in checks:
        remedy = f" -> {check.remedy}" if check.remedy else ""
        rows.append((check.name, check.state, check.found + remedy))
    styles = [{FAIL: "red", NOTE: "yellow"}.get(check.state, "green") for check in checks]
    table = Table(("", "", "found"), rows, styles)
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


def all_checks(config: CompressorConfig) -> Iterator[Check]:
    """Every check, in the order in which one leans on the other."""
    yield _package()
    yield _host()
    yield _plugin()
    yield _tokens(config)
    yield _window(config)
    yield _store(config)
    yield _auxiliary(config)


def _package() -> Check:
    from .. import __version__

    python, litellm = platform.python_version(), version("litellm")
    found = f"praison-compressor {__version__}, litellm {litellm}, Python {python}"
    return Check("package", OK, found)


def _host() -> Check:
    """Every place of the host that is built on, by replacing it and putting it back."""
    name = "host"
    try:
        found = f"praisonaiagents {version('praisonaiagents')}"
        from ..praisonai import install, installed, uninstall

        before = installed()
        seams = len(install().patches)
        if before is None:
            uninstall()
    except PackageNotFoundError:
        return Check(name, FAIL, "praisonaiagents is not installed", "pip install praisonaiagents")
    except (CompressorError, ImportError) as error:
        return Check(name, FAIL, str(error), "pip install 'praisonaiagents>=1.7.4,<1.8'")
    return Check(name, OK, f"{found}: all {seams} places that are replaced are there")


def _plugin() -> Check:
    points = entry_points(group="praisonai.plugins", name="praison-compressor")
    if points:
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
    before, remedy = "", "mend the URL, or start the database"
    if config.store_url is None:
        default = default_store(config)
        before = "memory; of an agent whose host keeps its session: "
        remedy = "mend the file, or move it away"
        if not default.exists():
            found = f"{before}{default}, not made yet (--store URL for another)"
            return Check("store", OK, found)
    try:
        with Place(store=config.store_url).open(new=True) as store:
            store.check()
            count = len(store.sessions(config.namespace))
            found = f"{store.place}: {number(count)} sessions in namespace {config.namespace!r}"
    except (CompressorError, ImportError) as error:
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
    try:
        reply = run(
            summarizer.summarize(
                [{"role": "user", "content": "Answer with the one word: ready"}],
                max_tokens=64,
                timeout_seconds=config.timeout_seconds,
            )
        )
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
