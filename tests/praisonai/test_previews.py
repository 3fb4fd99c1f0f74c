"""A user sees a compression before it happens, changes it, and undoes it."""

import re
from dataclasses import replace
from typing import Any

import pytest

from praison_compressor.compressor.bills import short_count
from praison_compressor.messages import text_of
from praison_compressor.praisonai.conversations import Choices
from praison_compressor.testing import Failure, SummaryModel, Worker
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
    talked,
    turn,
)


def said(record: Any) -> list[str]:
    """Return the user's words in a request, without summaries."""
    spoken = [m for m in record.messages if m["role"] == "user" and not is_framed(m)]
    return [text_of(message) for message in spoken]


def reference(shown: str, words: str) -> str:
    """Return the reference of the message that a preview shows with these words."""
    (found,) = re.findall(rf"^  (s\d+\.\d+) .* {words}", shown, re.M)
    return str(found)


def choose(made: Any, choice: str, *turns: int) -> str:
    """Choose the messages of these turns by a preview's references; return the answer."""
    shown = made.chat("/compact preview")
    return made.chat("/compact " + choice.format(*(reference(shown, f"Turn {n}:") for n in turns)))


@pytest.mark.parametrize("path", EVERY_PATH)
def test_compact_commits_what_the_preview_showed(host, path):
    """`/compact` commits the text that the preview paid for."""
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


def test_no_text_of_a_command_is_paid_twice(host):
    """Two previews, `/compact`, `/undo` and `/compact` again ask the model once."""
    made = talked(host)
    shown = made.chat("/compact preview")
    assert made.chat("/compact preview") == shown
    counted = re.findall(r"\d+ messages summarized by .*;", made.chat("/compact"))
    made.chat("/undo")
    assert re.findall(r"\d+ messages summarized by .*;", made.chat("/compact")) == counted != []
    assert len(host.for_model("aux")) == 1


def test_a_preview_sizes_and_names_what_would_go(host):
    """A preview has the references of the replaced messages, and the sizes of `/status`."""
    made = talked(host)
    shown = made.chat("/compact preview")
    after, before = re.findall(r"next request has ([\d.]+k) instead of ([\d.]+k);", shown)[0]
    made.chat("/compact")
    status = made.context_compressor.status()
    assert before == short_count(status.tokens_before)
    assert float(after[:-1]) * 1_000 == pytest.approx(status.tokens, 0.02)
    assert reference(shown, "Turn 2:").startswith("s1.")


def test_the_answer_names_each_size_and_counts_no_pin(host):
    """The answer of `/compact` has the sizes of the next request and of the conversation."""
    made = talked(host)
    made.chat("/compact")
    chat(made, [turn(n) for n in range(8, 12)])
    made.chat("/pin never on Fridays")
    use = made.context_compressor.context_use()
    messages = len(made.context_compressor.next_messages())
    whole = made.context_compressor.status().tokens_before
    line, became, sizes = made.chat("/compact").splitlines()
    assert float(re.findall(r": ([\d.]+)k →", line)[0]) * 1_000 > use.used
    assert float(re.findall(r": ([\d.]+)k →", line)[0]) * 1_000 == pytest.approx(whole, 0.02)
    after = short_count(made.context_compressor.context_use().used)
    assert sizes == f"The next request has {after} instead of {short_count(use.used)}."
    assert made.context_compressor.status().tokens == made.context_compressor.context_use().used
    result = made.context_compressor.last_result
    replaced = sum(len(segment.run) for segment in result.segments) + result.masked
    assert f"; {messages - replaced} messages kept verbatim." in became


def test_a_focus_that_no_model_read_is_mentioned(host):
    """The answer names a focus that no model read."""
    made = talked(host)
    host.route("aux", lambda asked: Failure(401, "Incorrect API key provided."))
    made.chat("/compact focus the harbour dues")
    heard = made.chat("/compact")
    assert "No model wrote a summary, so the focus (the harbour dues) was not used." in heard
    assert re.search(r"\n\d+ messages summarized without a model; ", heard)


def test_a_kept_messages_reason_is_the_user(host):
    """A kept message beside the head is kept by choice, not by `head_tokens`."""
    made = talked(host)
    choose(made, "keep {}", 1)
    head = made.chat("/compact preview").splitlines()[1]
    assert re.search(r"^head .*head_tokens=[\d_]+\); [1-9] messages? chosen by the user", head)


@pytest.mark.parametrize("auxiliary_model", ["gpt-4o", None])
def test_a_preview_has_the_sum_where_prices_are_known(host, auxiliary_model):
    """The preview prints one line with the cost of compressing now and the saving a turn."""
    host.route("gpt-4o", SummaryModel(r"L-\d+"))
    host.set_window(128_000, "gpt-4o")
    made = talked(host, auxiliary_model=auxiliary_model)
    sums = r"compressing now (costs|saves) \$[\d.]+, saves \$[\d.]+ a request"
    assert re.search(sums, made.chat("/compact preview"))


def test_a_kept_message_is_never_summarized(host):
    """No `/compact` or wrong reference ends what two `keep` calls keep."""
    made = talked(host)
    for number in (2, 4):
        shown = made.chat("/compact preview")
        made.context_compressor.keep([reference(shown, f"Turn {number}:")])
    missing = "No message s9.9. `/compact preview` lists the references."
    assert made.chat("/compact keep s9.9") == missing
    assert made.chat("/compact keep") == "/compact keep: expected references, such as s2.14"
    made.chat("/compact")
    chat(made, [turn(n, words=150) for n in range(8, 18)])
    assert made.context_compressor.status().summaries > 1
    last = said(of_agent(host)[-1])
    assert {turn(2), turn(4)} <= {*last}
    assert turn(3) not in last


def test_a_range_is_all_that_is_summarized(host):
    """After `choose_range` nothing outside the range is summarized."""
    made = talked(host)
    shown = made.chat("/compact preview")
    made.context_compressor.choose_range(*(reference(shown, f"Turn {n}:") for n in (2, 4)))
    made.chat("/compact")
    made.chat("Go on.")
    last = said(of_agent(host)[-1])
    assert last == [turn(n) for n in (0, 1, 4, 5, 6, 7)] + ["Go on."]


def test_the_focus_reaches_the_summarizer_once(host):
    """A focus is in the request for one summary only."""
    made = talked(host)
    made.chat("/compact focus the harbour dues")
    made.chat("/compact preview")
    made.chat("/compact")
    (asked,) = host.for_model("aux")
    assert "the harbour dues" in asked.text
    made.chat("/undo")
    made.chat("/compact")
    assert "the harbour dues" not in host.for_model("aux")[-1].text


def test_set_focus_leaves_the_kept_messages(host):
    """`set_focus` changes nothing but the focus."""
    made = talked(host)
    choose(made, "keep {}", 2)
    ours = made.context_compressor
    before = ours.conversation.choices
    ours.set_focus("the harbour dues")
    assert ours.conversation.choices == replace(before, focus="the harbour dues")
    ours.set_focus("")
    assert ours.conversation.choices == before


def test_an_answer_taken_back_drops_the_choices(host):
    """Choices outlive a new turn, until the newest messages are taken back."""
    made = talked(host)
    made.chat("/compact focus the harbour dues")
    host.answer_with(Worker(answer="It is done."))
    made.chat("Go on.")
    assert made.context_compressor.conversation.choices == Choices(focus="the harbour dues")
    del made.chat_history[-2:]
    made.chat("Go on otherwise.")
    assert made.context_compressor.conversation.choices == Choices()


def test_a_chosen_message_is_the_one_that_was_shown(host):
    """After an edit of earlier messages a choice still means the message that was shown."""
    made = talked(host)
    for number in (1, 3):
        choose(made, "keep {}", number)
    del made.chat_history[2:4]
    made.chat("Go on.")
    assert made.context_compressor.conversation.choices.keep == ()  # the ledger has it
    chat(made, [turn(n, words=150) for n in range(8, 18)])
    kept = {n for n in range(1, 8) if turn(n) in said(of_agent(host)[-1])}
    assert kept == {3}


def test_a_range_that_lost_an_end_is_refused_with_the_remedy(host):
    """A range whose first message was removed compresses nothing, until the user clears it."""
    made = talked(host)
    choose(made, "from {} to {}", 2, 4)
    del made.chat_history[4:6]
    refused = made.chat("/compact")
    assert refused.startswith("a message that ends the chosen range has left the conversation")
    assert made.chat("/compact preview") == refused
    assert made.context_compressor.context_status == "full"
    made.chat("/compact from")
    made.chat("/compact")
    made.chat("Go on.")
    assert not {turn(1), turn(3), turn(4)} & {*said(of_agent(host)[-1])}


def test_a_range_that_does_not_fit_is_answered_with_the_remedy(host):
    """A range that leaves more than the trigger is answered with the ways to clear it."""
    host.answer_with(Worker(1, parallel=2, arguments=numbered, answer="Noted. " * 12))
    made = agent(host, OPENAI, context(host), tools=[look_up])
    chat(made, [turn(n) for n in range(14)])
    assert "does not fit" not in made.chat("/compact preview")
    choose(made, "keep {}", 1)
    excess = r"\nThat does not fit: its messages have 1\dk, the trigger is 3\.\dk; "
    ranged = choose(made, "from {} to {}", 2, 3)
    assert re.search(excess + r"keep less, or clear a range by /compact from\.\n", ranged)
    assert "does not fit" not in made.chat("/compact from")
    choose(made, "from {} to {}", 2, 3)
    assert re.search(excess + r"a second /compact has no range\.$", made.chat("/compact"))
    assert "does not fit" not in made.chat("/compact")
    assert host.refused == []
