"""`CompressionEvaluator`: what a compressed session still knows, for the host's `EvalSuite`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from praisonaiagents.eval.base import BaseEvaluator

from ..compressor.writing import default_summarizer
from ..config import CompressorConfig
from ..errors import ConfigError
from ..facts.coverage import QUESTIONS, Probe, probe
from ..messages import Message
from ..messages.display import in_words
from ..summaries.protocol import Summarizer, as_summarizer
from ..summaries.threads import run as run_async

__all__ = ["CompressionEvalResult", "CompressionEvaluator", "answers_from"]

ANSWER_TOKENS = 600
_ASK = (
    "Below is what an agent is shown of its work so far. Answer the question from it alone, in "
    "full: name every file, command and rule that belongs there. Where it does not say, say so."
)


@dataclass(frozen=True)
class CompressionEvalResult:
    """The probes of a session: task, rules, files, failures, what comes next."""

    probes: tuple[Probe, ...]
    tokens_before: int
    tokens_after: int

    @property
    def overall_score(self) -> float:
        """0 to 10, as the host's suites add up: each kind of question counts the same."""
        asked = [each.score for each in self.probes if each.expected]
        return 10 * sum(asked) / len(asked) if asked else 10.0

    def to_dict(self) -> dict[str, Any]:
        """For a file of results."""
        return {
            "overall_score": self.overall_score,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "probes": [{**asdict(each), "score": each.score} for each in self.probes],
        }


class CompressionEvaluator(BaseEvaluator):  # type: ignore[misc]  # the host ships no types
    """Asks of a compressed agent what its transcript knows for certain; no model judges.

    Without `answerer` a fact counts where it stands in the view. With one, the answers that it
    gives from the view alone are scored: a callable that takes chat messages and returns text, or
    the name of a model at the auxiliary model's address.

    Raises:
        ConfigError: the agent is not compressed, or has not sent anything yet.
    """

    def __init__(self, agent: Any, answerer: Any = None, **given: Any) -> None:
        super().__init__(**given)
        self.agent = agent
        self._answerer = answerer

    def run(self, print_summary: bool = False, **given: Any) -> CompressionEvalResult:
        """The result for the agent's last request."""
        self.before_run()
        ours = getattr(self.agent, "context_compressor", None)
        if ours is None or ours.last_result is None:
            raise ConfigError(
                "nothing to evaluate: the agent is not compressed (context=CompressorContext()), "
                "or has not sent a request yet"
            )
        last = ours.last_result
        engine = ours.engine()
        whole = engine.verbatim(last.messages, session_id=ours.session_id)
        answers, answerer = None, self._answerer
        if isinstance(answerer, str):
            answerer = default_summarizer(replace(ours.config, auxiliary_model=answerer))
        asked = as_summarizer(answerer)
        if asked is not None:
            answers = run_async(answers_from(asked, last.messages, ours.config))
        found = probe(whole, last.messages, answers)
        result = CompressionEvalResult(tuple(found), last.tokens_before, last.tokens_after)
        self._result = result
        self.after_run(result)
        if print_summary:
            for each in result.probes:
                print(f"{each.kind}: {each.score:.0%} of {len(each.expected)}")
        return result


async def answers_from(
    answerer: Summarizer, view: Sequence[Message], config: CompressorConfig
) -> dict[str, str]:
    """What a model answers to each question, from the view alone.

    Raises:
        SummarizerUnavailable: no answer came.
    """
    shown = "\n\n".join(f"[{message.get('role')}]\n{in_words(message)}" for message in view)
    answers = {}
    for kind, question in QUESTIONS.items():
        reply = await answerer.summarize(
            [
                {"role": "system", "content": _ASK},
                {"role": "user", "content": f"{shown}\n\n# The question\n{question}"},
            ],
            max_tokens=ANSWER_TOKENS,
            model=None,
            timeout_seconds=config.timeout_seconds,
        )
        answers[kind] = reply.text
    return answers
