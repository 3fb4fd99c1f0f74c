"""`CompressionEvaluator`: what a compressed session still knows, for the host's `EvalSuite`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from praisonaiagents.eval.base import BaseEvaluator

from ..config import CompressorConfig
from ..errors import ConfigError
from ..facts import (
    GENERAL,
    CommandFact,
    Domain,
    Facts,
    FileFact,
    Note,
    Said,
    Todo,
    extract,
    rules_in,
)
from ..facts.coverage import Text, short
from ..facts.model import DONE
from ..messages import Message, content_digest
from ..messages.display import in_words
from ..summaries.litellm_client import default_summarizer
from ..summaries.protocol import Summarizer, as_summarizer
from ..summaries.threads import run as run_async

__all__ = ["CompressionEvalResult", "CompressionEvaluator", "Probe", "answers_from", "probe"]

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
            answerer = default_summarizer(ours.config, answerer)
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


# -------------------------------------------------------------- probes

QUESTIONS = {
    "task": "What is the user's task, and what did the user ask for last?",
    "rules": "Which rules and wishes of the user hold for all that is still to come?",
    "files": "Which files were changed, and what was done to each of them last?",
    "failures": "Which commands failed, and have not worked since?",
    "next": "What is open, and what comes next?",
}
"""What an agent that goes on has to know, by kind."""
TOLD = 0.6
"""Share of a fact's words that an answer in other words has to have."""
READING = ("read", "listed", "searched")


@dataclass(frozen=True)
class Probe:
    """A question on a compressed session: what its transcript says, and which of that is told."""

    kind: str
    question: str
    expected: tuple[str, ...]
    lacking: tuple[str, ...]
    """Those of `expected` that the view, or the answer, does not have."""

    @property
    def score(self) -> float:
        """0 to 1; 1 where the transcript has nothing of the kind."""
        return 1 - len(self.lacking) / len(self.expected) if self.expected else 1.0


def probe(
    messages: Sequence[Message],
    view: Sequence[Message],
    answers: Mapping[str, str] | None = None,
    *,
    domain: Domain = GENERAL,
) -> list[Probe]:
    """Ask of a view what its transcript knows for certain: no model judges.

    With `answers`, by the kinds of `QUESTIONS`, those are scored instead: what somebody who sees
    the view alone has said. A fact counts as told where the message it comes from stands in the
    view, where its words do, or, in an answer, most of them.
    """
    facts = extract(messages, domain=domain)
    standing = {content_digest(message) for message in view}
    shown = {n for n, message in enumerate(messages) if content_digest(message) in standing}
    seen = Text("\n".join(map(in_words, view)), facts.patterns)
    found = []
    rules = [
        Note(rule.text, rule.since) for rule in rules_in(messages, domain=domain) if rule.holds
    ]
    for kind, items in _expected(facts, rules).items():
        answer = None if answers is None else Text(answers.get(kind, ""), facts.patterns)
        lacking = [
            item
            for item in items
            if not (_says(answer, item) if answer else item.index in shown or _holds(seen, item))
        ]
        found.append(
            Probe(kind, QUESTIONS[kind], tuple(map(_line, items)), tuple(map(_line, lacking)))
        )
    return found


Item = Said | FileFact | CommandFact | Todo | Note


def _expected(facts: Facts, rules: Sequence[Note]) -> dict[str, list[Item]]:
    asked = sorted({0, len(facts.user) - 1}) if facts.user else []
    return {
        "task": [facts.user[n] for n in asked],
        "rules": [*rules],
        "files": [item for item in facts.files if item.action not in READING],
        "failures": [item for item in facts.commands if item.still_fails],
        "next": [item for item in facts.todos if item.status not in DONE] or list(facts.last_words),
    }


def _line(item: Item) -> str:
    if isinstance(item, FileFact):
        return f"{item.action} {item.path}"
    return item.text


def _holds(seen: Text, item: Item) -> bool:
    if isinstance(item, FileFact):
        return seen.has_file(item)
    if isinstance(item, CommandFact):
        return seen.has_command(item)
    return seen.has_todo(item) if isinstance(item, Todo) else seen.says(item.text)


def _says(answer: Text, item: Item) -> bool:
    """Whether an answer in other words tells of it."""
    if isinstance(item, FileFact):
        return answer.names(short(item.path))
    wanted = set(re.findall(r"\w{4,}", item.text.casefold()))
    told = wanted & set(re.findall(r"\w{4,}", answer.text.casefold()))
    return len(told) >= TOLD * len(wanted)
