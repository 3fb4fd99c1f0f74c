"""Hooks, memory and stream of the host hear of a compression, and commands control it."""

import io
from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.hooks import HookEvent, HookRegistry, HookResult
from rich.console import Console

from praison_compressor import Event
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import (
    MODES,
    OPENAI,
    OUTGROWING,
    PATHS,
    agent,
    cells,
    chat,
    context,
    of_agent,
    turn,
)


class Memory:
    """A memory that only wants to see what will be compressed."""

    def __init__(self, heard: list[tuple[str, Any]]) -> None:
        self._heard = heard

    def on_pre_compress(self, messages: list[Any]) -> str:
        """Take a look."""
        self._heard.append(("memory", messages))
        return ""


def hooks(hook: Any) -> HookRegistry:
    """Return hooks of the host that call `hook` before and after each compression."""
    registry = HookRegistry()
    for event in (HookEvent.BEFORE_COMPACTION, HookEvent.AFTER_COMPACTION):
        registry.register_function(event=event, func=hook, name=event.value)
    return registry


def listening(
    provider: LocalProvider, path: str, **options: Any
) -> tuple[Any, list[tuple[str, Any]]]:
    """Return an agent, and the reports of its compressions, in order."""
    heard: list[tuple[str, Any]] = []

    def hook(data: Any) -> HookResult:
        heard.append((data.event_name, data.to_dict()))
        return HookResult.allow()

    def listen(event: Event) -> None:
        if event.name in ("started", "committed", "failed"):
            heard.append((event.name, event.data))

    made = agent(provider, path, context(provider, **options), hooks=hooks(hook))
    made._memory_instance = Memory(heard)
    made.context_compressor.subscribe(listen)
    return made, heard


def check_reports(heard: list[tuple[str, Any]], compressions: int) -> None:
    """Assert that each listener heard each compression once, with its numbers."""
    names = [name for name, _ in heard]
    assert compressions >= 1
    for begins, ends in (("started", "committed"), ("before_compaction", "after_compaction")):
        assert [n for n in names if n in (begins, ends)] == [begins, ends] * compressions
    assert names.count("memory") == compressions
    first = dict(reversed(heard))
    assert any(message["content"] == OUTGROWING[0] for message in first["memory"])
    assert first["before_compaction"]["agent_name"] == "Ada"
    after, committed = first["after_compaction"], first["committed"]
    assert after["tokens_before"] == committed["tokens_before"] > committed["tokens_after"] > 0
    assert after["tokens_after"] == committed["tokens_after"]


@pytest.mark.parametrize(("path", "mode"), cells(PATHS))
def test_the_hosts_hooks_fire_once_for_each_compression(host, path, mode):
    """Each compression calls the host's hooks once before and after it, with its numbers."""
    made, heard = listening(host, path)
    MODES[mode](made, OUTGROWING)
    check_reports(heard, len(host.for_model("aux")))


@pytest.mark.parametrize(
    ("path", "mode"), [(PATHS[0], "chat"), (PATHS[1], "achat"), (PATHS[0], "iter_stream")]
)
def test_each_compression_in_the_background_is_reported_once(host, path, mode):
    """In the background each compression is reported once, in order."""
    made, heard = listening(host, path, background=True)
    for prompt in OUTGROWING:
        assert MODES[mode](made, [prompt])[0].strip() == ("Noted. " * 12).strip()
        assert made.context_compressor.for_model().wait_for_summaries(60)
    compressions = len(host.for_model("aux"))
    check_reports(heard, compressions)
    order = ["before_compaction", "started", "memory", "committed", "after_compaction"]
    assert [name for name, _ in heard] == order * compressions
    assert made.context_compressor.notice.startswith("Compressed in the background: ")
    assert made.context_compressor.context_status == "summarized"
    assert host.refused == []


def whole_log(name: str) -> str:
    """Read a log.

    Args:
        name: which
    """
    return "\n".join(f"{name} {number}: written" for number in range(900))


@pytest.mark.parametrize(("path", "mode"), [(PATHS[0], "chat"), (PATHS[1], "achat")])
def test_an_excerpt_beside_a_background_is_reported(host, path, mode, caplog):
    """With `background=True` a request reports what it commits itself, such as an excerpt."""
    host.answer_with(Worker(1, answer="Noted."))
    made, heard = listening(host, path, background=True)
    made.tools.append(whole_log)
    assert MODES[mode](made, [turn(1)]) == ["Noted."]
    assert made.context_compressor.context_status == "masked"
    order = ["before_compaction", "started", "memory", "committed", "after_compaction"]
    assert sorted(name for name, _ in heard) == sorted(order)
    assert "sent as well as it fits" not in caplog.text
    assert host.refused == []


@pytest.mark.parametrize("mode", ["chat", "achat"])
def test_a_failing_hook_ends_nothing(host, mode):
    """An exception of a hook or listener changes nothing of a compression."""

    def hook(data: Any) -> HookResult:
        raise RuntimeError("hook")

    class Broken(Memory):
        def on_pre_compress(self, messages: list[Any]) -> str:
            raise RuntimeError("memory")

    made = agent(host, PATHS[0], context(host), hooks=hooks(hook))
    made._memory_instance = Broken([])
    made.context_compressor.subscribe(lambda event: 1 / 0)
    answers = MODES[mode](made, OUTGROWING)
    assert None not in answers
    assert made.context_compressor.context_status == "summarized"


BEFORE = HookEvent.BEFORE_COMPACTION
REFUSALS: dict[str, Any] = {
    "a function": lambda registry: registry.register_function(BEFORE, lambda data: False),
    "a command": lambda registry: registry.register_command(BEFORE, "echo not now >&2; exit 2"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("path", PATHS)
def test_a_hook_of_the_host_refuses_a_compression(host, path, refusal):
    """After a hook's refusal requests fit without a compression."""
    registry = HookRegistry()
    REFUSALS[refusal](registry)
    made = agent(host, path, context(host), hooks=registry)
    assert None not in chat(made, OUTGROWING)
    sent = [len(record.messages) for record in of_agent(host)]
    assert max(sent) > sent[-1]
    assert made.context_compressor.context_status == "summarized"
    assert made.chat("/compact") == "Not compressed: a hook refused it."
    session = made.context_compressor.session_id
    assert made.context_compressor.ledger.open("default", session).entries == ()
    assert (host.for_model("aux"), host.refused) == ([], [])


@pytest.mark.parametrize("asked", ["/compact", "And the tide?"])
def test_a_refused_compression_keeps_the_users_choice(host, asked):
    """A message that the user keeps is kept after a hook refused the next compression."""
    allowed = [True]
    registry = HookRegistry()
    registry.register_function(BEFORE, lambda data: allowed[0])
    made = agent(host, OPENAI, context(host), hooks=registry)
    chat(made, OUTGROWING)
    shown = made.context_compressor.preview()
    made.context_compressor.keep([next(filter(None, reversed(shown.references)))])
    allowed[0] = False
    made.chat(asked)
    allowed[0] = True
    made.chat("And the wind?")
    session = made.context_compressor.session_id
    entries = made.context_compressor.ledger.open("default", session).entries
    assert "keep" in [entry.segment.kind for entry in entries]


def test_a_hook_of_the_host_adds_to_the_request_for_a_summary(host):
    """A hook that has the sizes and chats adds its context to the request."""
    heard: list[Any] = []

    def hook(data: Any) -> HookResult:
        heard.append((data.extra, made.chat("Write down what matters, in one line.")))
        return HookResult(additional_context="Name every berth.")

    registry = HookRegistry()
    registry.register_function(BEFORE, hook)
    made = agent(host, OPENAI, context(host, summary_instructions="Keep codes."), hooks=registry)
    chat(made, OUTGROWING)
    asked = host.for_model("aux")
    assert len(asked) == len(heard) > 0
    assert all("Keep codes.\nName every berth." in one.text for one in asked)
    assert all(answer for _, answer in heard)
    (numbers, _), *_ = heard
    assert numbers["tokens"] > numbers["trigger"] > numbers["target"]
    assert (numbers["to_summarize"] > 0, numbers["forced"]) == (True, False)
    assert host.refused == []


def test_a_failed_command_of_a_hook_adds_nothing(host):
    """The output of a hook's command that failed is not in the request."""
    registry = HookRegistry()
    registry.register_command(BEFORE, "echo Name no ship; exit 1")
    chat(agent(host, OPENAI, context(host), hooks=registry), OUTGROWING)
    assert "Name no ship" not in host.for_model("aux")[0].text


# ---------------------------------------------------------------- on the screen

SAYS = "▸ compressing "
SAYS_WHAT = "▸ Compressed "


def shown(made: Agent, mode: str, *, terminal: bool = True) -> str:
    """Return the text on the host's console after six turns."""
    screen = io.StringIO()
    made._console = console = Console(file=screen, force_terminal=terminal, width=160)
    if made._using_custom_llm:
        made.llm_instance._console = console
    assert None not in MODES[mode](made, [turn(n) for n in range(6)])
    assert made.context_compressor.context_status == "summarized"
    return screen.getvalue()


@pytest.mark.parametrize("mode", ["achat", "start"])
@pytest.mark.parametrize("path", PATHS)
def test_a_verbose_agent_shows_progress_and_the_line(host, path, mode):
    """A verbose agent prints a line when a summary begins, then a line with its numbers."""
    text = shown(agent(host, path, context(host, context_window=3_000), output="verbose"), mode)
    assert 0 <= text.index(SAYS) < text.index(SAYS_WHAT)


def test_a_pipe_gets_the_line_alone(host):
    """A pipe gets only the line with the numbers."""
    small = context(host, context_window=3_000)
    piped = shown(agent(host, PATHS[0], small, output="verbose"), "achat", terminal=False)
    assert SAYS_WHAT in piped
    assert SAYS not in piped
    assert "\x1b" not in piped


def test_a_silent_agent_prints_nothing(host, capfd):
    """A silent agent prints no word of a compression."""
    assert shown(agent(host, PATHS[0], context(host, context_window=3_000)), "chat") == ""
    out, err = capfd.readouterr()
    assert "ompress" not in out + err
