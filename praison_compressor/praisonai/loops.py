"""Synchronous work where an event loop may be running in the same thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["apart", "off_loop"]

T = TypeVar("T")


def off_loop(work: Callable[[], T]) -> T:
    """Do it here, or in a thread with this context where this one has a loop running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return apart(work)


def apart(work: Callable[[], T]) -> T:
    """Do it in a thread with this context, and wait."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), name="praison-compressor")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
