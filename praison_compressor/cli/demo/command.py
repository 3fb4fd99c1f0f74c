"""`demo`: what was sent before and after each compression of a real agent's conversation."""

from __future__ import annotations

from typing import Annotated

import typer

from ..failures import guarded
from ..options import AsJson
from ..terminal import Screen

__all__ = [
    "demo",
]


Static = Annotated[
    bool, typer.Option("--static", help="Summaries without a model, from extracted facts.")
]


@guarded
def demo(static: Static = False, as_json: AsJson = False) -> None:
    """Watch a real agent outgrow its window and go on: no key, no network.

    A praisonaiagents Agent reads Python's standard library with its tools. Its model is a local
    server with scripted answers, as strict as a real provider: it refuses a request over its
    window, and answers from nothing but what it is shown.
    """
    # The demo needs the host and a server: the other commands do not wait for them.
    from .view import play

    play(Screen(), static=static, as_json=as_json)
