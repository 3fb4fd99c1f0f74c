"""Somebody who watches an agent sees its compressions; one that is silent stays silent."""

from __future__ import annotations

import io

import pytest
from praisonaiagents import Agent
from rich.console import Console

from praison_compressor.testing import LocalProvider, Summarizer
from tests.helpers.hosting import MODES, PATHS, agent, context, turn

SPINS = "compressing "
TELLS = "▸ Compressed "


def watched(made: Agent, mode: str, *, terminal: bool = True) -> str:
    """What stands on the host's console after six turns."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=160)
    made._console = console
    if made._using_custom_llm:
        made.llm_instance._console = console
    answers = MODES[mode](made, [turn(n) for n in range(6)])
    assert None not in answers
    assert made.context_compressor.context_status == "summarized"
    return screen.getvalue()


@pytest.mark.parametrize("mode", ["chat", "achat", "start"])
@pytest.mark.parametrize("path", PATHS)
def test_a_verbose_agent_shows_progress_and_the_line(
    host: LocalProvider, path: str, mode: str
) -> None:
    """A spinner while a summary is written, also beside the host's own, then one line."""
    shown = watched(agent(host, path, context(host, context_window=3_000), output="verbose"), mode)
    assert SPINS in shown
    assert TELLS in shown
    assert shown.index(SPINS) < shown.index(TELLS)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("path", PATHS)
def test_a_summary_in_the_background_is_told_in_lines(
    host: LocalProvider, path: str, terminal: bool
) -> None:
    """When it begins and when it is there; nothing turns where the next question is typed."""
    host.route("aux", Summarizer(delay_seconds=0.3))  # longer than a turn
    options = context(host, context_window=3_000, background=True)
    made = agent(host, path, options, output="verbose")
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=160)
    made._console = console
    if made._using_custom_llm:
        made.llm_instance._console = console
    between = []
    for n in range(16):
        assert made.chat(turn(n)) is not None
        before = screen.tell()
        assert made.context_compressor.engine().background.wait(60)
        between.append(screen.getvalue()[before:])
    shown = screen.getvalue()
    begun = shown.count("▸ in the background: compressing ")
    done = len([line for line in shown.splitlines() if TELLS in line and "background" in line])
    assert begun == done >= 1
    assert shown.index("▸ in the background") < shown.index(TELLS)
    assert any(TELLS in text for text in between)
    # What was written while the host showed nothing: whole lines, nothing that moves.
    assert all(text.count("\n") == text.count("▸") for text in between)
    assert not any("\x1b[?25" in text or "\x1b[1A" in text for text in between)


def test_a_pipe_gets_the_line_alone(host: LocalProvider) -> None:
    """Nothing that moves, and no control sequence."""
    made = agent(host, PATHS[0], context(host, context_window=3_000), output="verbose")
    shown = watched(made, "achat", terminal=False)
    assert TELLS in shown
    assert SPINS not in shown
    assert "\x1b" not in shown


def test_a_silent_agent_says_nothing(
    host: LocalProvider, capfd: pytest.CaptureFixture[str]
) -> None:
    """The host's default."""
    assert watched(agent(host, PATHS[0], context(host, context_window=3_000)), "chat") == ""
    out, err = capfd.readouterr()
    assert "ompress" not in out + err


def test_an_agent_that_traces_its_actions_traces_compressions(
    host: LocalProvider, capfd: pytest.CaptureFixture[str]
) -> None:
    """In the host's own form, among its tools."""
    from praisonaiagents.output.status import disable_status_output

    made = agent(host, PATHS[0], context(host, context_window=3_000), output="actions")
    try:
        watched(made, "chat")
    finally:
        disable_status_output()
    out, err = capfd.readouterr()
    assert "context_compressor" in out + err
    assert "Compressed " in out + err
