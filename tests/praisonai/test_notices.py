"""Hooks, memory and stream of the host hear of a compression, and commands control it."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.hooks import HookEvent, HookRegistry, HookResult
from rich.console import Console

from praison_compressor import Event, SessionNotFound
from praison_compressor.messages import text_of
from praison_compressor.testing import LocalProvider, Worker
from praison_compressor.view.frame import is_framed
from tests.helpers.hosting import (
    EVERY_PATH,
    MODES,
    OPENAI,
    OUTGROWING,
    PATHS,
    WINDOW,
    WORDS,
    agent,
    cells,
    chat,
    context,
    look_up,
    numbered,
    of_agent,
    turn,
)

LINE = re.compile(
    r"Compressed [\d.]+k → [\d.]+k? \(system \d+, summary [\d.]+k?, kept [\d.]+k?, tools \d+\)"
    r" · \d+ % of 6\.0k"
)


class Memory:
    """A memory that only wants to see what will be compressed."""

    def __init__(self, heard: list[tuple[str, Any]]) -> None:
        self._told = heard

    def on_pre_compress(self, messages: list[Any]) -> str:
        """Take a look."""
        self._told.append(("memory", messages))
        return ""


def hooks(hook: Any) -> HookRegistry:
    """Hooks of the host that call `hook` before and after each compression."""
    registry = HookRegistry()
    for event in (HookEvent.BEFORE_COMPACTION, HookEvent.AFTER_COMPACTION):
        registry.register_function(event=event, func=hook, name=event.value)
    return registry


def listening(
    provider: LocalProvider, path: str, **options: Any
) -> tuple[Any, list[tuple[str, Any]]]:
    """An agent, and the reports of its compressions, in order."""
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
    """Each listener once for each compression, with the numbers; the memory sees the transcript."""
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
def test_the_hosts_hooks_fire_once_for_each_compression(
    host: LocalProvider, path: str, mode: str
) -> None:
    """Before and after in pairs, with the numbers, and the memory sees the whole transcript."""
    made, heard = listening(host, path)
    MODES[mode](made, OUTGROWING)
    check_reports(heard, len(host.for_model("aux")))


@pytest.mark.parametrize(
    ("path", "mode"), [(PATHS[0], "chat"), (PATHS[1], "achat"), (PATHS[0], "iter_stream")]
)
def test_each_compression_in_the_background_is_reported_once(
    host: LocalProvider, path: str, mode: str
) -> None:
    """Before, started, memory; committed, after: once each, in this order; no turn waits."""
    made, heard = listening(host, path, background=True)
    for prompt in OUTGROWING:
        assert MODES[mode](made, [prompt])[0].strip() == ("Noted. " * 12).strip()
        assert made.context_compressor.engine().background.wait(60)
    compressions = len(host.for_model("aux"))
    check_reports(heard, compressions)
    order = ["before_compaction", "started", "memory", "committed", "after_compaction"]
    assert [name for name, _ in heard] == order * compressions
    assert made.context_compressor.notice.endswith("in the background")
    assert made.context_compressor.context_status == "summarized"
    assert host.refused == []


@pytest.mark.parametrize("mode", ["chat", "achat"])
def test_a_failing_hook_ends_nothing(host: LocalProvider, mode: str) -> None:
    """What listens may raise; the turn goes on and the summary is written."""

    def hook(data: Any) -> HookResult:
        raise RuntimeError("hook")

    class Broken(Memory):
        def on_pre_compress(self, messages: list[Any]) -> str:
            raise RuntimeError("memory")

    made = agent(host, PATHS[0], context(host), hooks=hooks(hook))
    made._memory_instance = Broken([])
    made.context_compressor.subscribe(lambda event: 1 / 0)  # type: ignore[arg-type, return-value]
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
def test_a_hook_of_the_host_refuses_a_compression(
    host: LocalProvider, path: str, refusal: str
) -> None:
    """No model is asked and nothing recorded; above the window a request is made to fit."""
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


def test_a_hook_of_the_host_adds_to_the_request_for_a_summary(host: LocalProvider) -> None:
    """Its context goes to the summarizer; a command that fails has neither said nor refused it;
    a hook may talk to the agent itself."""
    heard: list[Any] = []

    def hook(data: Any) -> HookResult:
        heard.append((data.extra, made.chat("Write down what matters, in one line.")))
        return HookResult(additional_context="Name every berth.")

    registry = HookRegistry()
    registry.register_function(BEFORE, hook)
    registry.register_command(BEFORE, "echo Name no ship; exit 1")
    made = agent(host, OPENAI, context(host, summary_instructions="Keep codes."), hooks=registry)
    chat(made, OUTGROWING)
    asked = host.for_model("aux")
    assert len(asked) == len(heard) > 0
    assert all("Keep codes.\nName every berth." in one.text for one in asked)
    assert "Name no ship" not in asked[0].text
    assert all(answer for _, answer in heard)
    (numbers, _), *_ = heard
    assert numbers["tokens"] > numbers["trigger"] > numbers["target"]
    assert (numbers["to_summarize"] > 0, numbers["forced"]) == (True, False)
    assert host.refused == []


# ---------------------------------------------------------------- on the screen

SAYS = "▸ compressing "
SAYS_WHAT = "▸ Compressed "


def shown_on(made: Agent, *, terminal: bool = True) -> io.StringIO:
    """The screen that the host's console writes to from now on."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=160)
    made._console = console
    if made._using_custom_llm:
        made.llm_instance._console = console
    return screen


def shown(made: Agent, mode: str, **how: Any) -> str:
    """What stands on the host's console after six turns."""
    screen = shown_on(made, **how)
    assert None not in MODES[mode](made, [turn(n) for n in range(6)])
    assert made.context_compressor.context_status == "summarized"
    return screen.getvalue()


@pytest.mark.parametrize("mode", ["achat", "start"])
@pytest.mark.parametrize("path", PATHS)
def test_a_verbose_agent_shows_progress_and_the_line(
    host: LocalProvider, path: str, mode: str
) -> None:
    """One line when a summary is begun, also beside the host's own progress, then one with its
    numbers."""
    text = shown(agent(host, path, context(host, context_window=3_000), output="verbose"), mode)
    assert 0 <= text.index(SAYS) < text.index(SAYS_WHAT)


def test_a_pipe_gets_the_line_alone_and_a_silent_agent_nothing(
    host: LocalProvider, capfd: pytest.CaptureFixture[str]
) -> None:
    """No progress and no control sequence in a pipe; silence is the host's default."""
    small = context(host, context_window=3_000)
    piped = shown(agent(host, PATHS[0], small, output="verbose"), "achat", terminal=False)
    assert SAYS_WHAT in piped
    assert SAYS not in piped
    assert "\x1b" not in piped
    capfd.readouterr()
    assert shown(agent(host, PATHS[0], context(host, context_window=3_000)), "chat") == ""
    out, err = capfd.readouterr()
    assert "ompress" not in out + err


# ---------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("options", "prompts", "heard"),
    [
        ({"store_url": "sqlite:////proc/nowhere/ledger.db"}, OUTGROWING, "summarized"),
        ({"auto_compact": False}, OUTGROWING, "summarized"),
        ({}, [turn(0, words=800)], "masked"),
        ({}, OUTGROWING, "summarized"),
    ],
)
def test_the_status_counts_what_was_sent(
    host: LocalProvider, options: dict[str, Any], prompts: Any, heard: str
) -> None:
    """Without a store, unasked, or shortened: what was sent is counted, and what it was before."""
    made = agent(host, OPENAI, context(host, **options))
    assert made.context_compressor.status().tokens == 0
    assert None not in chat(made, prompts)
    status = made.context_compressor.status()
    assert (status.context_status, made.context_compressor.context_status) == (heard, heard)
    assert status.tokens == of_agent(host)[-1].prompt_tokens
    assert status.tokens_before > WINDOW * 0.8 > status.tokens - status.system_tokens > 0
    assert (status.summaries > 0) == (heard == "summarized")
    assert host.refused == []


TALKED = [
    *((OPENAI, mode) for mode in ("chat", "astart", "stream", "iter_stream")),
    *((path, "chat") for path in EVERY_PATH[1:]),
]


@pytest.mark.parametrize(("path", "mode"), TALKED)
def test_slash_commands_need_no_request_of_the_agent(
    host: LocalProvider, path: str, mode: str
) -> None:
    """`/status`, `/compact`, `/undo`, `/new`, `/resume`: answered, recorded nowhere, sent to no
    model."""
    made = agent(host, path, context(host))
    MODES[mode](made, [turn(n) for n in range(8)])
    sent, recorded = len(of_agent(host)), len(made.chat_history)

    (status,) = MODES[mode](made, ["/status"])
    assert re.match(r"Last request: .* of 6.0k \(full\)\nPaid since the process began: ", status)
    (heard,) = MODES[mode](made, ["/compact the harbour dues"])
    line, became = heard.split("\n")
    assert LINE.fullmatch(line)
    assert "(system 0," not in line
    done = re.fullmatch(
        r"(\d+) messages summarized by (?:openai/)?aux; (\d+) messages kept verbatim. "
        r"/undo takes it back\.",
        became,
    )
    (asked,) = host.for_model("aux")
    assert "the harbour dues" in asked.text
    session = made.context_compressor.session_id
    assert (len(of_agent(host)), len(made.chat_history)) == (sent, recorded)

    # The summary made by the command is what the next turn sends.
    MODES[mode](made, [turn(8)])
    assert made.context_compressor.context_status == "summarized"
    assert len(host.for_model("aux")) == 1
    before = of_agent(host)[-1].messages
    summary = next(message for message in before if is_framed(message))

    # Taken back, the messages are sent again, also over the mark; not again once there is none.
    (back,) = MODES[mode](made, ["/undo"])
    assert back.startswith(f"Taken back: {done[1]} messages (")
    MODES[mode](made, [turn(9), turn(10)])
    sent_again = of_agent(host)[-1].messages
    assert [message["role"] for message in sent_again].count("user") == 11
    assert summary not in sent_again
    assert made.context_compressor.status().tokens > 0.8 * 0.75 * WINDOW
    assert len(host.for_model("aux")) == 1
    assert MODES[mode](made, ["/undo"]) == ["Nothing to take back."]
    assert host.refused == []

    (new,) = MODES[mode](made, ["/new"])
    assert new == f"New session {made.context_compressor.session_id}"
    assert made.context_compressor.session_id != session
    assert made.chat_history == []
    assert MODES[mode](made, ["/status"]) == [
        f"No request yet in session {made.context_compressor.session_id}."
    ]
    assert MODES[mode](made, [f"/resume {session}"]) == [f"Session {session}"]
    (unknown,) = MODES[mode](made, ["/resume nowhere"])
    assert "nowhere" in unknown
    assert made.context_compressor.session_id == session
    with pytest.raises(SessionNotFound, match="nowhere"):  # only inside a chat it is an answer
        made.context_compressor.resume("nowhere")


def test_help_names_every_command(host: LocalProvider) -> None:
    """`/help` lists what the chat answers by itself."""
    lines = agent(host, OPENAI, context(host)).chat("/help").splitlines()
    names = {line.split()[0].lstrip("/") for line in lines}
    assert names == {"status", "context", "compact", "pin", "undo", "new", "resume", "help"}
    assert host.requests == []


@pytest.mark.parametrize("name", [None, "desk"])
def test_a_bare_resume_lists_the_users_own_sessions(
    host: LocalProvider, tmp_path: Path, name: str | None
) -> None:
    """The newest first, with and without an id; none of another conversation in the store."""
    store = f"sqlite:///{tmp_path}/ledger.db"
    chat(agent(host, OPENAI, context(host, store_url=store, session_id="hall")), ["Good day."])
    made = agent(host, OPENAI, context(host, store_url=store, session_id=name))
    assert "No stored session" in made.chat("/resume")
    made.chat("I am at the desk.")
    first = made.context_compressor.session_id
    made.chat("/new")
    made.chat("Again at the desk.")
    second = made.context_compressor.session_id
    lines = made.chat("/resume").splitlines()[1:]
    assert [line.split()[0] for line in lines] == [second, first]
    assert made.chat(f"/resume {first}") == f"Session {first}"
    assert made.chat_history[0]["content"] == "I am at the desk."
    assert len(made.chat("/resume").splitlines()[1:]) == 2


def test_other_slashes_are_words(host: LocalProvider) -> None:
    """A path or a word of the user's own goes to the model; so do commands of agents not ours."""
    made = agent(host, PATHS[0], context(host))
    words = ["/usr/bin is full", "/news", "/contact", "/stats please", "/status.txt"]
    chat(made, words)
    agent(host, PATHS[0], name="Bob").chat("/status")
    said = dict.fromkeys(record.messages[-1]["content"] for record in of_agent(host))
    assert list(said) == [*words, "/status"]


def test_a_misspelled_command_is_answered_with_the_right_one(host: LocalProvider) -> None:
    """Not by the model, which makes something up of it."""
    wrong = {
        "/compres": "compact",
        "/compress": "compact",
        "/Status": "status",
        "/contxt": "context",
    }
    made = agent(host, PATHS[0], context(host))
    for said, meant in wrong.items():
        assert f"No command {said}; did you mean /{meant}?" in made.chat(said)
    assert host.requests == []


def test_the_status_after_a_command_is_of_the_next_request(host: LocalProvider) -> None:
    """`/compact` and `/undo` change what is sent next, and `/status` says so."""
    made = agent(host, OPENAI, context(host))
    chat(made, [turn(n) for n in range(8)])
    made.chat("/compact")
    compacted = made.chat("/status").splitlines()[0]
    made.chat("/undo")
    whole = made.chat("/status").splitlines()[0]
    made.chat("Go on.")
    sent = made.chat("/status").splitlines()[0]
    assert re.match(r"Next request: .*summary [1-9].*\(summarized\)", compacted)
    assert re.match(r"Next request: .*summary 0.*\(full\)", whole)
    assert re.match(r"Last request: .*summary 0.*\(full\)", sent)


def test_undo_counts_only_what_is_sent_again(host: LocalProvider) -> None:
    """Messages that were deleted from the history meanwhile are not sent again."""
    host.answer_with(lambda asked: f"Noted as {asked.number}. " * 12)
    made = agent(host, OPENAI, context(host))
    chat(made, [turn(n) for n in range(8)])
    made.chat("/compact")
    del made.chat_history[4:6]
    answer = made.chat("/undo")
    sizes = re.findall(r"[nN]ext request(?: has|:) ([\d.]+k)", answer + made.chat("/status"))
    assert sizes[0] == sizes[1]
    made.chat("Go on.")
    back = [turn(n) for n in range(8) if n != 2]
    said = [text_of(m) for m in of_agent(host)[-1].messages if m["role"] == "user"]
    assert said == [*back, "Go on."]
    assert " 2 more are no longer in the conversation." in answer


@pytest.mark.parametrize("mode", ["iter_stream", "achat"])
def test_the_context_is_shown_by_part(host: LocalProvider, mode: str) -> None:
    """What the next request takes, tool schemas and all, and the largest messages by their tool."""
    host.answer_with(Worker(1, parallel=2, tool="look_up", arguments=numbered, answer="Noted."))
    made = agent(host, OPENAI, context(host, recall=False), tools=[look_up])
    MODES["iter_stream"](made, [turn(n) for n in range(16)])
    use = made.context_compressor.context_use()
    (heard,) = MODES[mode](made, ["/context"])
    lines = dict(re.findall(r"^([a-z ]{14}) +(-?[\d.]+k?)", heard, re.M))
    assert [name.rstrip() for name in lines] == list(use.parts)
    assert heard.startswith(f"{use.used / 1000:.1f}k of 6.0k (")
    assert use.messages["summaries"] > 0
    assert re.search(r"^\[\d+\] +\d+  tool look_up$", heard, re.M)
    MODES["iter_stream"](made, [turn(16)])
    counted = made.context_compressor.engine().tokens.message({"role": "user", "content": turn(16)})
    asked = next(r for r in of_agent(host) if turn(16) == r.messages[-1]["content"])
    assert asked.prompt_tokens == use.used + counted


@pytest.mark.parametrize("mode", ["chat", "achat"])
def test_compacting_by_masks_alone_is_reported(host: LocalProvider, mode: str) -> None:
    """Where masks are enough `/compact` says what they brought, and nothing the second time."""

    def read_page(topic: str, part: int) -> str:
        """Read a page.

        Args:
            topic: of what
            part: which
        """
        return look_up(topic, part) + WORDS * 50

    host.set_window(100_000)
    host.answer_with(Worker(2, parallel=3, tool="read_page", arguments=numbered, answer="Noted."))
    made = agent(host, OPENAI, context(host, context_window=20_000), tools=[read_page])
    MODES["iter_stream"](made, [turn(n) for n in range(3)])
    host.answer_with(Worker(answer="Noted."))
    MODES["iter_stream"](made, [turn(3)])
    (heard,) = MODES[mode](made, ["/compact"])
    assert re.match(r"Compressed [\d.]+k → [\d.]+k \(system [1-9]\d+, summary 0,", heard)
    assert re.search(r"\n[1-9]\d* outputs masked; [1-9]\d* messages kept verbatim\.", heard)
    assert made.context_compressor.context_status == "masked"
    assert made.context_compressor.last_result.newly_masked > 0
    assert host.for_model("aux") == []
