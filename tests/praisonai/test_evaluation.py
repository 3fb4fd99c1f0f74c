"""What a compressed agent still knows, asked without a judge, in the host's own suite."""

from __future__ import annotations

import pytest
from praisonaiagents.eval import EvalSuite

from praison_compressor import ConfigError
from praison_compressor.praisonai.evaluation import CompressionEvaluator, probe
from praison_compressor.testing import Asked, LocalProvider, Worker
from tests.helpers.hosting import OPENAI, agent, context, look_up, numbered, of_agent, turn
from tests.helpers.transcripts import step

RULE = "Always write the totals in euros, never in dollars."


def worked(host: LocalProvider) -> object:
    """An agent that was told a rule first, and has worked past its window since."""
    made = agent(host, OPENAI, context(host), tools=[look_up])
    made.chat("This is about the books of the harbour. " + turn(0))
    made.chat(RULE)
    host.answer_with(Worker(2, arguments=numbered, tool="look_up", answer="Noted. " * 12))
    for n in range(1, 10):
        made.chat(turn(n))
    assert made.context_compressor.context_status == "summarized"
    return made


def test_a_suite_of_the_host_runs_it(host: LocalProvider) -> None:
    """The task and the rule stand in the view; the score is on the suite's scale."""
    evaluator = CompressionEvaluator(worked(host), name="books")
    suite = EvalSuite([evaluator]).run(print_summary=False)
    assert suite.errors == []
    (result,) = suite.evaluator_results.values()
    assert suite.overall_score == result.overall_score > 9
    by_kind = {each["kind"]: each for each in result.to_dict()["probes"]}
    assert any("euros" in each for each in by_kind["rules"]["expected"])
    assert by_kind["rules"]["score"] == by_kind["task"]["score"] == 1


def test_what_a_view_lacks_is_named() -> None:
    """A rule, a file, a failure and an open item that stood in what was cut away."""
    worked = [
        {"role": "user", "content": "Mend the parser. " + RULE},
        *step("c1", "exit code 1\nFAILED test_parser.py", name="bash", command="pytest -q tests"),
        *step("c2", "ok", name="write_file", path="src/parser.py", content="x = 1"),
        {"role": "user", "content": "Go on, please."},
    ]
    whole = {each.kind: each for each in probe(worked, worked)}
    cut = {each.kind: each for each in probe(worked, worked[-1:])}
    lacking = {kind: each.lacking for kind, each in cut.items() if each.lacking}
    assert {each.score for each in whole.values()} == {1.0}
    assert "euros" in lacking["rules"][0]
    assert lacking["files"] == ("created src/parser.py",)
    assert lacking["failures"] == ("pytest -q tests",)
    assert cut["task"].score == 0.5


@pytest.mark.parametrize(
    ("said", "score"), [(RULE, 1.0), ("I do not know.", 0.0)], ids=["knows it", "does not"]
)
def test_a_model_that_sees_the_view_alone_is_asked(
    host: LocalProvider, said: str, score: float
) -> None:
    """Its answer to each question is scored against the transcript; a judge is not asked."""
    made = worked(host)

    def answers(asked: Asked) -> str:
        return said if "Which rules" in asked.last_user else "Nothing is told."

    host.route("reader", answers)
    before = len(of_agent(host))
    result = CompressionEvaluator(made, answerer="openai/reader").run()
    asked = [r for r in host.requests if r.model == "reader"]
    assert len(asked) == len(result.probes)
    assert len(of_agent(host)) == before + len(asked)
    (rules,) = (each for each in result.probes if each.kind == "rules")
    assert rules.score == score
    assert "conversation-summary" in asked[0].last_user


def test_an_agent_that_is_not_compressed_is_told_how(host: LocalProvider) -> None:
    """Rather than scored."""
    with pytest.raises(ConfigError, match="context=CompressorContext"):
        CompressionEvaluator(agent(host, OPENAI)).run()
