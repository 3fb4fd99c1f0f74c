"""An agent whose summaries are judged by the model that writes them."""

from __future__ import annotations

import pytest

from praison_compressor.messages import text_of
from praison_compressor.testing import Answer, Asked, Failure, LocalProvider, Reply
from tests.helpers.hosting import OUTGROWING, PATHS, agent, context, of_agent

LINE = "The import of ledger L-900 stopped because the disk was full."
FALSE = "The import of ledger L-900 stopped because the network was slow."
TURNS = [OUTGROWING[0], f"{OUTGROWING[1]}\n{LINE}", *OUTGROWING[2:6]]
SUMMARY = f"## Done\nThe ledgers were looked after in order.\n## Errors\n- {FALSE}"
CORRECTED = f'2: contradicted: "{LINE}"'
QUESTION = "numbered claims"

FAILURES: dict[str, Answer] = {
    "refused": Failure(400, "no such question"),
    "broken": Failure(500, "out of order"),
    "late": Reply(CORRECTED, delay_seconds=20),
    "invented": Reply('2: contradicted: "The import stopped because a cable was cut."'),
}


def answer_with(host: LocalProvider, verdict: Answer) -> None:
    """The auxiliary model writes a summary with a wrong reason, and judges it so."""
    host.route("aux", lambda asked: verdict if _judges(asked) else Reply(SUMMARY))


def _judges(asked: Asked) -> bool:
    return QUESTION in text_of(asked.messages[-1])


@pytest.mark.parametrize("path", PATHS)
def test_a_wrong_reason_is_corrected_in_what_the_agent_reads(
    host: LocalProvider, path: str
) -> None:
    """From the next request on, with the user's line; both requests are on the bill."""
    answer_with(host, Reply(CORRECTED))
    made = agent(host, path, context(host, verify_with="model"))
    results = []
    for said in TURNS:
        made.chat(said)
        results.append(made.context_compressor.last_result)
    asked = host.for_model("aux")
    assert [QUESTION in text_of(one.messages[-1]) for one in asked] == [False, True]
    sent = "\n".join(text_of(message) for message in of_agent(host)[-1].messages)
    assert f'{FALSE} [contradicted: "{LINE}", as a model judges]' in sent
    first = next(result for result in results if result is not None and result.unverified)
    assert [doubt.claim for doubt in first.unverified] == [FALSE]
    assert first.usage.prompt_tokens == sum(one.prompt_tokens for one in asked)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_turn_outlives_its_judge(host: LocalProvider, failure: str) -> None:
    """Whatever it answers, or does not: the summary is sent as it was written."""
    answer_with(host, FAILURES[failure])
    made = agent(host, PATHS[0], context(host, verify_with="model", timeout_seconds=1))
    answers = [made.chat(said) for said in TURNS]
    assert all(answer.startswith("Noted.") for answer in answers)
    assert [QUESTION in text_of(one.messages[-1]) for one in host.for_model("aux")] == [False, True]
    sent = "\n".join(text_of(message) for message in of_agent(host)[-1].messages)
    assert FALSE in sent
    assert "as a model judges" not in sent


def test_nothing_is_asked_unless_it_is_wanted(host: LocalProvider) -> None:
    """By default a compression has one request."""
    answer_with(host, Reply(CORRECTED))
    made = agent(host, PATHS[0], context(host))
    for said in TURNS:
        made.chat(said)
    assert [QUESTION in text_of(one.messages[-1]) for one in host.for_model("aux")] == [False]
