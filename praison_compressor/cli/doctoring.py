"""`doctor`: what works here, what does not, and what to do about each."""

from __future__ import annotations

from dataclasses import asdict

import typer

from .checks import FAIL, NOTE, Check, all_checks
from .failures import FOUND_FAULT, guarded, unlogged
from .options import (
    ApiBase,
    AsJson,
    ForModel,
    Model,
    Namespace,
    Store,
    Timeout,
    Window,
    config_of,
)
from .terminal import Screen

__all__ = ["doctor"]


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
