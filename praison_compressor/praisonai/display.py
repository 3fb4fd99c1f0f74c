"""What somebody who watches an agent sees of its compressions, in the host's own display.

With `output="verbose"` a spinner while a summary is written and the line that tells of it; in the
host's modes that trace actions the line alone. An agent that is silent stays silent. A summary in
the background is told in lines: a spinner would turn where somebody types the next question.
"""

from __future__ import annotations

import logging
import threading
import weakref
from typing import Any

from ..events import Event
from ..forks import renewed
from ..plaintext import one_line
from .status import short

__all__ = ["Display"]

log = logging.getLogger(__name__)

NAME = "context_compressor"


class Display:
    """One agent's. Nothing in it may fail into a turn."""

    def __init__(self, agent: weakref.ref[Any]) -> None:
        self._agent = agent
        self._spinner: Any = None
        self._lock = renewed(threading.Lock())

    def __call__(self, event: Event) -> None:
        """Show how far a compression is."""
        try:
            words = _words(event)
            if event.name == "started":
                self._start(words)
            elif event.name == "skipped":
                self.tell(words)
            elif words:
                self._say(words)
        except Exception:
            log.debug("the display failed at %s", event.name, exc_info=True)

    def aside(self, event: Event) -> None:
        """Show how far a compression in the background is, between what the host prints."""
        given_up = "given up" if event.name == "abandoned" else ""
        words = _words(event) or given_up
        if words:
            _quietly(lambda: self._print(f"in the background: {words}"))

    def stop(self) -> None:
        """Take the spinner away."""
        with self._lock:
            spinner, self._spinner = self._spinner, None
        if spinner is not None:
            _quietly(spinner.stop)

    def tell(self, line: str) -> None:
        """Show the line that tells of a compression."""
        _quietly(lambda: self._print(line))
        _quietly(lambda: _trace(line))

    def _start(self, words: str) -> None:
        console = self._console()
        # In a pipe there is nothing to turn round; the line comes all the same.
        if console is None or not console.is_terminal:
            return
        from rich.errors import LiveError
        from rich.live import Live
        from rich.spinner import Spinner
        from rich.text import Text

        spinner = Live(Spinner("dots", Text(words)), console=console, transient=True)
        try:
            spinner.start()
            # Within the host's own progress it is drawn with that, which may not be soon.
            spinner.refresh()
        except LiveError:  # an older rich, where the host shows its own progress just now
            return
        with self._lock:
            before, self._spinner = self._spinner, spinner
        if before is not None:
            before.stop()

    def _say(self, words: str) -> None:
        from rich.spinner import Spinner
        from rich.text import Text

        with self._lock:
            spinner = self._spinner
        if spinner is not None:
            spinner.update(Spinner("dots", Text(words)), refresh=True)

    def _print(self, line: str) -> None:
        console = self._console()
        if console is None:
            return
        from rich.text import Text

        console.print(Text(f"▸ {line}", style="dim"))

    def _console(self) -> Any:
        """The one that the host's own progress is on; None unless it is verbose."""
        agent = self._agent()
        if agent is None or not getattr(agent, "verbose", False):
            return None
        model = getattr(agent, "_llm_instance", None)
        return getattr(model, "console", None) or getattr(agent, "console", None)


def _words(event: Event) -> str:
    if event.name == "started":
        return f"compressing {short(event.data['tokens'])} tokens"
    if event.name == "part_summarized":
        return f"compressing, part {event.data['part']} of {event.data['parts']} read"
    if event.name == "fell_back":
        return f"compressing; {one_line(str(event.data['model']))} gave no summary"
    if event.name == "skipped":
        return _skipped(event)
    return ""


def _skipped(event: Event) -> str:
    if event.data["reason"] == "cooldown":
        return f"{one_line(str(event.data['model']))} rests after a failure and is not asked"
    size = f"not compressed at {short(event.data['tokens'])} tokens"
    if event.data["reason"] == "no gain":
        return f"{size}: it would free too little"
    return f"{size}: what cannot be dropped takes more than {short(event.data['trigger'])}"


def _trace(line: str) -> None:
    """The line as an action, where the host traces actions itself.

    A callback of the application's own is left alone: it counts the tools of its agent.
    """
    from praisonaiagents import main

    callback = main.sync_display_callbacks.get("tool_call")
    if getattr(callback, "__module__", "").startswith("praisonaiagents.output"):
        callback(message=line, tool_name=NAME, tool_input={}, tool_output=line)


def _quietly(work: Any) -> None:
    try:
        work()
    except Exception:
        log.debug("the display failed", exc_info=True)
