"""`doctor`: what can be wrong with an installation, each thing tried, and what to do about it."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version

import typer

from ..config import CompressorConfig
from ..errors import CompressorError
from ..messages.display import one_line
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits
from .failures import FOUND_FAULT, guarded, unlogged
from .options import ApiBase, AsJson, ForModel, Model, Namespace, Store, Timeout, Window, config_of
from .sessions import default_of
from .terminal import Screen, number

__all__ = [
    "FAIL",
    "NOTE",
    "OK",
    "Check",
    "all_checks",
    "doctor",
]


# -------------------------------------------------------------- checks


OK, NOTE, FAIL = "ok", "note", "fail"


PLUGIN = "praison-compressor"


PLUGIN_GROUP = "praisonai.plugins"


PLUGIN_VARIABLE = "PRAISONAI_PLUGINS"


TRY_TOKENS = 64


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
    yield _litellm()
    yield _tokens(config)
    yield _window(config)
    yield _store(config)
    yield _auxiliary(config)


def _package() -> Check:
    from .. import __version__

    return Check(
        "package", OK, f"praison-compressor {__version__}, Python {platform.python_version()}"
    )


def _host() -> Check:
    """Every place of the host that is built on: what is replaced, by putting it in place and back;
    what is only read, by its name."""
    name = "host"
    try:
        found = f"praisonaiagents {version('praisonaiagents')}"
        from ..praisonai import install, installed, uninstall
        from ..praisonai.probe import READS, missing

        before = installed()
        seams = len(install().patches.seams)
        if before is None:
            uninstall()
    except PackageNotFoundError:
        return Check(name, FAIL, "praisonaiagents is not installed", "pip install praisonaiagents")
    except (CompressorError, ImportError) as error:
        return Check(name, FAIL, str(error), "pip install 'praisonaiagents>=1.7.4,<1.8'")
    gone = list(missing())
    if gone:
        named = "; ".join(f"{each.seam} is gone, and with it {each.lost}" for each in gone)
        return Check(name, NOTE, f"{found}: {named}", "pip install 'praisonaiagents>=1.7.4,<1.8'")
    read = sum(len(each.names) for each in READS)
    return Check(name, OK, f"{found}: all {seams} places replaced and {read} names read are there")


def _plugin() -> Check:
    name = "plugin"
    found = [point for point in entry_points(group=PLUGIN_GROUP) if point.name == PLUGIN]
    if not found:
        return Check(
            name,
            NOTE,
            "not registered with the host: only code switches it on, as CompressorContext does",
            "install the package with pip, for the host's configuration to find it",
        )
    return Check(
        name,
        OK,
        f"registered; the host loads it where {PLUGIN_VARIABLE} or .praisonai/config.yaml asks",
    )


def _litellm() -> Check:
    name = "model table"
    try:
        found = version("litellm")
    except PackageNotFoundError:
        return Check(name, FAIL, "litellm is not installed", "pip install praison-compressor")
    known = model_limits("gpt-4o")
    if known.guessed:
        return Check(
            name, NOTE, f"litellm {found} carries no table", "set context_window for every model"
        )
    return Check(name, OK, f"litellm {found}")


def _tokens(config: CompressorConfig) -> Check:
    name = "tokenizer"
    tokens = TokenCounter(config.model)
    model = config.model or "no model named"
    try:
        tokens.text("one two three")
    except (CompressorError, OSError, ValueError) as error:
        return Check(name, FAIL, one_line(str(error)), "pip install --force-reinstall tiktoken")
    library = tokens.vocabulary.by
    by = f", by {library} {version(library)}" if library else ""
    if tokens.exact:
        return Check(name, OK, f"{model}: counted with {tokens.source}{by}")
    remedy = (
        "counts are corrected by what the provider reports"
        if config.model
        else "--for-model names it"
    )
    return Check(name, NOTE, f"{model}: {tokens.source}{by}", remedy)


def _window(config: CompressorConfig) -> Check:
    name = "window"
    limits = model_limits(config.model, config.context_window)
    found = f"{number(limits.window)} tokens ({limits.source})"
    if limits.guessed:
        remedy = "set context_window" if config.model else "--for-model names the model"
        return Check(name, NOTE, found, remedy)
    return Check(name, OK, found)


def _store(config: CompressorConfig) -> Check:
    name = "store"
    if config.store_url is not None:
        return _reached(name, config, config.store_url, "mend the URL, or start the database")
    found = "memory; of an agent whose host keeps its session: "
    default = default_of(config)
    if not default.exists():
        return Check(name, OK, f"{found}{default}, not made yet (--store URL for another)")
    return _reached(name, config, str(default), "mend the file, or move it away", found)


def _reached(name: str, config: CompressorConfig, url: str, remedy: str, before: str = "") -> Check:
    try:
        from ..ledger.sql.store import open_store

        store = open_store(url, key=config.store_key)
        try:
            store.check()
            place = store.place
            count = len(store.sessions(config.namespace))
        finally:
            store.close()
    except (CompressorError, ImportError) as error:
        return Check(name, FAIL, before + one_line(str(error)), remedy)
    found = f"{place}: {number(count)} sessions in namespace {config.namespace!r}"
    return Check(name, OK, before + found)


def _auxiliary(config: CompressorConfig) -> Check:
    """One small question to the model, as a summary would be asked for."""
    name = "summaries"
    if config.auxiliary_model is None:
        return Check(
            name, OK, "static outside an agent; in one its own model writes them (--model to try)"
        )
    from ..summaries.litellm_client import LiteLLMSummarizer
    from ..summaries.threads import run

    summarizer = LiteLLMSummarizer(
        config.auxiliary_model, api_base=config.auxiliary_api_base, api_key=config.auxiliary_api_key
    )
    started = time.monotonic()
    try:
        reply = run(
            summarizer.summarize(
                [{"role": "user", "content": "Answer with the one word: ready"}],
                max_tokens=TRY_TOKENS,
                timeout_seconds=config.timeout_seconds,
            )
        )
    except CompressorError as error:
        kind = "auth" if "api_key" in str(error) else getattr(error, "kind", "provider")
        return Check(name, FAIL, one_line(str(error)), _REMEDIES.get(kind, "see the message"))
    seconds = time.monotonic() - started
    said = f"answered in {seconds:.1f} s" if reply.text.strip() else "answered nothing"
    state = OK if reply.text.strip() else NOTE
    return Check(
        name, state, f"{config.auxiliary_model}: {said}", "" if state == OK else "try another"
    )


_REMEDIES = {
    "auth": "set the provider's key in the environment, such as OPENAI_API_KEY",
    "quota": "wait, or see to the account; until then summaries are static",
    "timeout": "a faster model, or a longer timeout_seconds",
    "network": "is --api-base right, and the network there?",
    "context": "a model with a larger window",
    "provider": "is the model's name right, and --api-base?",
}


# -------------------------------------------------------------- doctoring


@guarded
def doctor(
    model: Model = None,
    api_base: ApiBase = None,
    timeout: Timeout = None,
    for_model: ForModel = None,
    window: Window = None,
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Check the host, the tokenizer, the window, the store and the model that writes summaries.

    Exit code 1 when something that is configured does not work.
    """
    config = config_of(
        auxiliary_model=model,
        auxiliary_api_base=api_base,
        timeout_seconds=timeout,
        model=for_model,
        context_window=window,
        store_url=store,
        namespace=namespace,
    ).with_environment()
    with unlogged():  # what a check finds is in its line
        found = list(all_checks(config))
    _print(Screen(), found, as_json=as_json)
    if any(check.state == FAIL for check in found):
        raise typer.Exit(FOUND_FAULT)


def _print(screen: Screen, found: list[Check], *, as_json: bool) -> None:
    if as_json:
        screen.json(
            {"works": all(c.state != FAIL for c in found), "checks": list(map(asdict, found))}
        )
        return
    styles = [{FAIL: "red", NOTE: "yellow"}.get(check.state, "green") for check in found]
    rows = []
    for check in found:
        remedy = f" -> {check.remedy}" if check.remedy else ""
        rows.append([check.name, check.state, f"{check.found}{remedy}"])
    screen.table(["", "", "found"], rows, styles=styles)
