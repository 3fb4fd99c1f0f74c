"""A user sees a compression before it happens, changes it, and takes it back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import SessionNotFound
from praison_compressor.compressor.bills import short
from praison_compressor.messages import text_of
from praison_compressor.testing import Failure, LocalProvider, SummaryModel, Worker
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
    chat,
    context,
    look_up,
    numbered,
    of_agent,
    turn,
)

LINE = re.compile(
    r"Compressed the conversation: [\d.]+k → [\d.]+k? "
    r"\(system \d+, summary [\d.]+k?, kept [\d.]+k?, tools \d+\) · \d+ % of 6\.0k"
)


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
    """The status has the tokens of the last request and those before compression."""
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
    assert re.match(r"Last request: .* of 6.0k \(full\)\nPaid: 8 requests, ", status)
    (heard,) = MODES[mode](made, ["/compact the harbour dues"])
    line, became, sizes = heard.split("\n")
    assert LINE.fullmatch(line)
    assert "(system 0," not in line
    done = re.fullmatch(
        r"(\d+) messages summarized by (?:openai/)?aux; (\d+) messages kept verbatim. "
        r"/undo takes it back\.",
        became,
    )
    (asked,) = host.for_model("aux")
    assert "the harbour dues" in asked.text
    assert re.fullmatch(r"The next request has [\d.]+k instead of [\d.]+k\.", sizes)
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
        f"No request by this process yet in session {made.context_compressor.session_id}."
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
    """The compressor, not the model, answers a misspelled command."""
    wrong = {
        "/compres": "compact",
        "/compress": "compact",
        "/Status": "status",
        "/contxt": "context",
        "/compat": "compact",
        "/resum": "resume",
        "/udno": "undo",
        "/hlep": "help",
        "/nw": "new",
    }
    made = agent(host, PATHS[0], context(host))
    for said, meant in wrong.items():
        assert f"No command {said}; did you mean /{meant}?" in made.chat(said)
    assert host.requests == []


def test_words_behind_a_wordless_command_do_nothing(host: LocalProvider) -> None:
    """`/undo the last edit` is no undo of a compression, and no lost message."""
    made = talked(host)
    made.chat("/compact")
    sent = len(host.requests)
    answer = made.chat("/undo the last edit")
    assert answer == "/undo takes no words. Nothing was done, or sent to the model."
    assert made.context_compressor.context_status == "summarized"
    assert len(host.requests) == sent


def test_a_misspelled_choice_compresses_nothing(host: LocalProvider) -> None:
    """`/compact previw` is no focus: it is answered with the right word."""
    made = talked(host)
    for said, meant in {"previw": "preview", "kep s1.2": "keep", "form s1.2": "from"}.items():
        wrong = said.partition(" ")[0]
        answer = made.chat(f"/compact {said}")
        assert answer == (
            f"No /compact {wrong}; did you mean /compact {meant}? Nothing was compressed."
        )
    assert made.context_compressor.last_result.context_status == "full"
    assert host.for_model("aux") == []


def test_status_and_undo_count_what_is_sent_next(host: LocalProvider) -> None:
    """Messages that were deleted from the history meanwhile are not sent again."""
    host.answer_with(lambda asked: f"Noted as {asked.number}. " * 12)
    made = agent(host, OPENAI, context(host))
    chat(made, [turn(n) for n in range(8)])
    made.chat("/compact")
    assert re.match(r"Next request: .*summary [1-9].*\(summarized\)", made.chat("/status"))
    del made.chat_history[4:6]
    answer, status = made.chat("/undo"), made.chat("/status")
    assert re.match(r"Next request: .*summary 0.*\(full\)", status)
    sizes = re.findall(r"[nN]ext request(?: has|:) ([\d.]+k)", answer + status)
    assert sizes[0] == sizes[1]
    made.chat("Go on.")
    assert re.match(r"Last request: .*summary 0.*\(full\)", made.chat("/status"))
    back = [turn(n) for n in range(8) if n != 2]
    said = [text_of(m) for m in of_agent(host)[-1].messages if m["role"] == "user"]
    assert said == [*back, "Go on."]
    assert " 2 more are no longer in the conversation." in answer


@pytest.mark.parametrize("mode", ["iter_stream", "achat"])
def test_the_context_is_shown_by_part(host: LocalProvider, mode: str) -> None:
    """`/context` prints the next request by part, with tool schemas, and the largest messages."""
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
    """`/compact` by masks alone reports the freed tokens; a second one has nothing to report."""

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
    assert re.match(
        r"Compressed the conversation: [\d.]+k → [\d.]+k \(system [1-9]\d+, summary 0,", heard
    )
    assert re.search(r"\n[1-9]\d* outputs masked; [1-9]\d* messages kept verbatim\.", heard)
    assert made.context_compressor.context_status == "masked"
    assert made.context_compressor.last_result.newly_masked > 0
    assert host.for_model("aux") == []


WIDE = 14_000


def talked(host: LocalProvider, path: str = OPENAI, **options: Any) -> Any:
    """Return an agent of eight turns with tools, far below the trigger."""
    host.answer_with(Worker(1, parallel=2, arguments=numbered, answer="Noted. " * 12))
    host.set_window(WIDE)
    made = agent(host, path, context(host, context_window=WIDE, **options), tools=[look_up])
    chat(made, [turn(n) for n in range(8)])
    return made


def said(record: Any) -> list[str]:
    """Return the user's words in a request, without summaries."""
    spoken = [m for m in record.messages if m["role"] == "user" and not is_framed(m)]
    return [text_of(message) for message in spoken]


def reference(shown: str, words: str) -> str:
    """Return the reference of the message that a preview shows with these words."""
    (found,) = re.findall(rf"^  (s\d+\.\d+) .* {words}", shown, re.M)
    return str(found)


@pytest.mark.parametrize("path", EVERY_PATH)
def test_compact_commits_what_the_preview_showed(host: LocalProvider, path: str) -> None:
    """The text that was shown is in the next request, and no model is asked again."""
    made = talked(host, path)
    shown = made.chat("/compact preview")
    written = [line[4:] for line in shown.splitlines() if line.startswith("  | ")]
    asked = len(host.for_model("aux"))
    made.chat("/compact")
    host.answer_with(Worker(answer="Noted. " * 12))
    made.chat("Go on.")
    # litellm joins the summary with the user's messages around it for Anthropic.
    sent = "\n".join(map(text_of, of_agent(host)[-1].messages))
    assert len(written) > 1
    assert "\n".join(written) in sent
    assert len(host.for_model("aux")) == asked == 1
    assert host.refused == []


def test_no_text_of_a_command_is_paid_twice(host: LocalProvider) -> None:
    """Two previews, `/compact`, `/undo` and `/compact` again ask the model once."""
    made = talked(host)
    shown = made.chat("/compact preview")
    assert made.chat("/compact preview") == shown
    counted = re.findall(r"\d+ messages summarized by .*;", made.chat("/compact"))
    made.chat("/undo")
    assert re.findall(r"\d+ messages summarized by .*;", made.chat("/compact")) == counted != []
    assert len(host.for_model("aux")) == 1


def test_a_preview_sizes_and_names_what_would_go(host: LocalProvider) -> None:
    """Each replaced message has its reference; the sizes are those of `/status`."""
    made = talked(host)
    shown = made.chat("/compact preview")
    after, before = re.findall(r"next request has ([\d.]+k) instead of ([\d.]+k);", shown)[0]
    made.chat("/compact")
    status = made.context_compressor.status()
    assert before == short(status.tokens_before)
    assert float(after[:-1]) * 1_000 == pytest.approx(status.tokens, 0.02)
    assert reference(shown, "Turn 2:").startswith("s1.")


def test_the_answer_names_each_size_and_counts_no_pin(host: LocalProvider) -> None:
    """The next request before and after, the whole conversation, and messages of it alone."""
    made = talked(host)
    made.chat("/compact")
    chat(made, [turn(n) for n in range(8, 12)])
    made.chat("/pin never on Fridays")
    use, messages = made.context_compressor.context_use(), len(made.context_compressor.carried())
    whole = made.context_compressor.status().tokens_before
    line, became, sizes = made.chat("/compact").splitlines()
    assert float(re.findall(r": ([\d.]+)k →", line)[0]) * 1_000 > use.used
    assert float(re.findall(r": ([\d.]+)k →", line)[0]) * 1_000 == pytest.approx(whole, 0.02)
    after = short(made.context_compressor.context_use().used)
    assert sizes == f"The next request has {after} instead of {short(use.used)}."
    assert made.context_compressor.status().tokens == made.context_compressor.context_use().used
    result = made.context_compressor.last_result
    replaced = sum(len(segment.run) for segment in result.segments) + result.masked
    assert f"; {messages - replaced} messages kept verbatim." in became


def test_a_focus_that_no_model_read_is_mentioned(host: LocalProvider) -> None:
    """A static summary has no focus, and the answer says so."""
    made = talked(host)
    host.route("aux", lambda asked: Failure(401, "Incorrect API key provided."))
    made.chat("/compact focus the harbour dues")
    heard = made.chat("/compact")
    assert "No model wrote a summary, so the focus (the harbour dues) was not used." in heard
    assert re.search(r"\n\d+ messages summarized without a model; ", heard)


def test_a_kept_messages_reason_is_the_user(host: LocalProvider) -> None:
    """A kept message beside the head is kept by choice, not by `head_tokens`."""
    made = talked(host)
    shown = made.chat("/compact preview")
    made.chat(f"/compact keep {reference(shown, 'Turn 1:')}")
    head = made.chat("/compact preview").splitlines()[1]
    assert re.search(r"^head .*head_tokens [\d,]+\); [1-9] messages? chosen by the user", head)


def test_keeping_nothing_is_answered_with_the_form(host: LocalProvider) -> None:
    """`/compact keep` without a reference names the form of one."""
    assert talked(host).chat("/compact keep") == "/compact keep: expected references, such as s2.14"


@pytest.mark.parametrize("auxiliary_model", ["gpt-4o", None])
def test_a_preview_has_the_sum_where_prices_are_known(
    host: LocalProvider, auxiliary_model: str | None
) -> None:
    """The preview prints one line with the cost of compressing now and the saving a turn."""
    host.route("gpt-4o", SummaryModel(r"L-\d+"))
    host.set_window(128_000, "gpt-4o")
    made = talked(host, auxiliary_model=auxiliary_model)
    sums = r"compressing now (costs|saves) [\d.]+ \$, saves [\d.]+ \$ a turn"
    assert re.search(sums, made.chat("/compact preview"))


def test_a_kept_message_is_never_summarized(host: LocalProvider) -> None:
    """A kept message stays after `/compact`, later compressions and a wrong reference."""
    made = talked(host)
    for number in (2, 4):
        shown = made.chat("/compact preview")
        made.chat(f"/compact keep {reference(shown, f'Turn {number}:')}")
    assert "s9.9" in made.chat("/compact keep s9.9")
    made.chat("/compact")
    chat(made, [turn(n, words=150) for n in range(8, 18)])
    assert made.context_compressor.status().summaries > 1
    last = said(of_agent(host)[-1])
    assert {turn(2), turn(4)} <= {*last}
    assert turn(3) not in last


def test_a_message_kept_without_a_compact_stays_too(host: LocalProvider) -> None:
    """The next request records the choice: a compression by itself leaves the message alone."""
    made = talked(host)
    made.chat(f"/compact keep {reference(made.chat('/compact preview'), 'Turn 3:')}")
    chat(made, [turn(n, words=150) for n in range(8, 18)])
    assert made.context_compressor.context_status == "summarized"
    last = said(of_agent(host)[-1])
    assert turn(3) in last
    assert turn(2) not in last


def test_a_range_is_all_that_is_summarized(host: LocalProvider) -> None:
    """`/compact from REF to REF`: messages before and behind it stay word for word."""
    made = talked(host)
    shown = made.chat("/compact preview")
    ends = [reference(shown, f"Turn {number}:") for number in (2, 4)]
    made.chat("/compact from {} to {}".format(*ends))
    made.chat("/compact")
    made.chat("Go on.")
    last = said(of_agent(host)[-1])
    assert last == [turn(n) for n in (0, 1, 4, 5, 6, 7)] + ["Go on."]


def test_the_focus_reaches_the_summarizer_once(host: LocalProvider) -> None:
    """`/compact focus WORDS`, then a preview, then `/compact`: one call, with the words in it."""
    made = talked(host)
    made.chat("/compact focus the harbour dues")
    made.chat("/compact preview")
    made.chat("/compact")
    (asked,) = host.for_model("aux")
    assert "the harbour dues" in asked.text
    made.chat("/undo")
    made.chat("/compact")
    assert "the harbour dues" not in host.for_model("aux")[-1].text


def test_an_edited_history_drops_the_choices(host: LocalProvider) -> None:
    """References of a preview do not name other messages than those that were shown."""
    made = talked(host)
    made.chat(f"/compact keep {reference(made.chat('/compact preview'), 'Turn 2:')}")
    del made.chat_history[2:4]
    made.chat("Go on.")
    assert made.context_compressor.conversation.choices.keep == ()
