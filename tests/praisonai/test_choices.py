"""A user sees a compression before it happens, and changes it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from praison_compressor.compressor.bills import short
from praison_compressor.messages import text_of
from praison_compressor.testing import LocalProvider, Summarizer, Worker
from praison_compressor.view.frame import is_framed
from tests.helpers.hosting import (
    EVERY_PATH,
    OPENAI,
    agent,
    chat,
    context,
    look_up,
    numbered,
    of_agent,
    turn,
)

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


def test_a_preview_sizes_and_names_what_would_go(host: LocalProvider) -> None:
    """Each replaced message has its reference; the sizes are those of `/status`."""
    made = talked(host)
    shown = made.chat("/compact preview")
    before, after = re.findall(r"would send ([\d.]+k) as ([\d.]+k),", shown)[0]
    made.chat("/compact")
    status = made.context_compressor.status()
    assert before == short(status.tokens_before)
    assert float(after[:-1]) * 1_000 == pytest.approx(status.tokens, 0.02)
    assert reference(shown, "Turn 2:").startswith("s1.")


def test_keeping_nothing_is_answered_with_the_form(host: LocalProvider) -> None:
    """`/compact keep` without a reference names the form of one."""
    assert talked(host).chat("/compact keep") == "/compact keep: expected references, such as s2.14"


def test_a_preview_has_the_sum_where_prices_are_known(host: LocalProvider) -> None:
    """One line: what compressing now costs, and what it saves a turn."""
    host.route("gpt-4o", Summarizer(r"L-\d+"))
    host.set_window(128_000, "gpt-4o")
    made = talked(host, auxiliary_model="gpt-4o")
    sums = r"compressing now (costs|saves) [\d.]+ \$, saves [\d.]+ \$ a turn"
    assert re.search(sums, made.chat("/compact preview"))


def test_a_kept_message_is_never_summarized(host: LocalProvider) -> None:
    """Not by the command, nor by later compressions, nor by another preview's numbers."""
    made = talked(host)
    for number in (2, 4):
        shown = made.chat("/compact preview")
        made.chat(f"/compact keep {reference(shown, f'Turn {number}:')}")
    made.chat("/compact")
    chat(made, [turn(n, words=60) for n in range(8, 30)])
    assert made.context_compressor.status().summaries > 1
    last = said(of_agent(host)[-1])
    assert {turn(2), turn(4)} <= {*last}
    assert turn(3) not in last


def test_a_message_kept_without_a_compact_stays_too(host: LocalProvider) -> None:
    """The next request records the choice: a compression by itself leaves the message alone."""
    made = talked(host)
    made.chat(f"/compact keep {reference(made.chat('/compact preview'), 'Turn 3:')}")
    chat(made, [turn(n, words=60) for n in range(8, 30)])
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


def test_a_range_may_be_open_and_taken_back(host: LocalProvider) -> None:
    """`/compact from REF` alone goes up to the newest messages; `/compact from` drops the range."""
    made = talked(host)
    begins = reference(made.chat("/compact preview"), "Turn 3:")
    from_third = made.chat(f"/compact from {begins}")
    assert "Turn 2:" not in from_third
    assert "Turn 3:" in from_third
    assert "Turn 2:" in made.chat("/compact from")


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


def test_a_wrong_reference_changes_nothing(host: LocalProvider) -> None:
    """The answer names it, and the choices before it stand."""
    made = talked(host)
    made.chat(f"/compact keep {reference(made.chat('/compact preview'), 'Turn 2:')}")
    assert "s9.9" in made.chat("/compact keep s9.9")
    made.chat("/compact")
    made.chat("Go on.")
    assert turn(2) in said(of_agent(host)[-1])


def test_an_edited_history_drops_the_choices(host: LocalProvider) -> None:
    """References of a preview do not name other messages than those that were shown."""
    made = talked(host)
    made.chat(f"/compact keep {reference(made.chat('/compact preview'), 'Turn 2:')}")
    del made.chat_history[2:4]
    made.chat("Go on.")
    assert made.context_compressor.conversation.choices.keep == ()
