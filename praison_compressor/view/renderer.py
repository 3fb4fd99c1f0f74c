"""`ResultRenderer`: render and measure masks, excerpts and quotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from ..config import CompressorConfig
from ..ledger.segments import Segment
from ..messages import Message
from ..messages.secrets import Redactor
from ..messages.speakers import spoken_parts
from ..quotes import read_quotes
from ..tokens.counter import TokenCounter
from .budget import Budget
from .frame import IN_REACH, frame_summary
from .masks import (
    MASK,
    SAMPLE_REFERENCE,
    excerpt_results,
    large_results,
    mask_results,
    maskable_results,
)
from .view import Run, View

MOST_CHARS_PER_TOKEN = 6
"""Upper bound of a token's characters in prose of any language."""

SAMPLE_SEGMENT = "s99"
"""Few segments have a longer name."""

References = Mapping[int, str]
"""Message index → reference; "" if the archive cannot hold the message."""


class ResultRenderer:
    """Render masks and excerpts; count tokens for one model."""

    def __init__(
        self, config: CompressorConfig, tokens: TokenCounter, *, redacts_secrets: bool
    ) -> None:
        self._config = config
        self._tokens = tokens
        self._redactor = Redactor(config.namespace) if redacts_secrets else None

    # ---------------------------------------------------------- rendered

    def render_masks(
        self, view: View, budget: Budget, references: References | None = None
    ) -> dict[int, Message]:
        """Return the mask of each maskable output.

        With `references`, return only the masks of the outputs that have a reference.
        """
        messages = view.transcript.messages
        # Without a model only the policy "mask" masks: a static summary is as cheap and keeps more.
        default = MASK if budget.has_model else ""
        calls = maskable_results(messages, view.tokens, self._config, default)
        if references is None:
            references = dict.fromkeys(calls, SAMPLE_REFERENCE)
        lines = {
            index: mask_results(calls[index], messages[index], references[index])
            for index in calls
            if index in references
        }
        return dict(zip(lines, self._redact(list(lines.values())), strict=True))

    def render_excerpts(
        self, view: View, most: int | None, references: References | None = None
    ) -> dict[int, Message]:
        """Return the excerpt of each result of more than `most` tokens."""
        if most is None or sum(view.tokens) <= most:
            return {}
        messages, steps = view.transcript.messages, view.transcript.steps
        large = large_results(messages, view.tokens, steps, self._config, most)
        done = {*view.result_segments, *view.covered} if large else set()
        if references is None:
            references = dict.fromkeys(large, SAMPLE_REFERENCE)
        excerpts: dict[int, Message] = {}
        for index in sorted(large.keys() - done):
            # Secrets are redacted before the cut: half a secret is not recognized.
            (message,) = self._redact([messages[index]])
            reference = references.get(index, "") if self._config.recall else ""
            tokens = view.tokens[index]
            short = excerpt_results(large[index], message, tokens, reference)
            if self._tokens.message(short) <= tokens // 2:
                excerpts[index] = short
        return excerpts

    def _redact(self, messages: Sequence[Message]) -> Sequence[Message]:
        return messages if self._redactor is None else self._redactor.redact(messages)[0]

    # ---------------------------------------------------------- measured

    def measure_excerpts(self, view: View, budget: Budget) -> dict[int, Segment]:
        """Return the excerpt of each large result, as an unrecorded segment."""
        return {
            index: Segment(
                kind="excerpt",
                run=(view.digests[index],),
                rendered=short,
                tokens=self._tokens.message(short),
                source_tokens=view.tokens[index],
                method="static",
            )
            for index, short in self.render_excerpts(view, budget.most_result_tokens).items()
        }

    def measure_masks(self, view: View, budget: Budget) -> dict[int, int]:
        """Return the tokens of each output's mask."""
        lines = self.render_masks(view, budget)
        return {index: self._tokens.message(line) for index, line in lines.items()}

    def measure_quotes(self, view: View, run: Run, most_tokens: int, budget: Budget) -> int:
        """Return the tokens of a run's framed quotes.

        Without a model, the tokens of the summaries inside the run are added.
        """
        messages = view.transcript.messages[slice(*run)]
        frame = frame_summary(
            "",
            count=len(messages),
            method="model",
            reference=SAMPLE_SEGMENT,
            in_reach=IN_REACH,
        )
        beside = self._tokens.message({"role": "user", "content": frame})
        if not budget.has_model:
            beside += sum(segment.tokens for segment in view.summaries_in(run))
        left = max(0, most_tokens - beside)
        if _user_words_exceed(messages, left):
            # The quotes are not read: reading takes as long as counting half of the transcript.
            return max(most_tokens, beside)
        references: Sequence[str] = ()
        if self._config.recall:
            references = [f"{SAMPLE_SEGMENT}.{place}" for place in range(1, len(messages) + 1)]
        text = read_quotes(messages, self._config.rule_sources).render(
            left, self._tokens.text, references=references, beside_prose=budget.has_model
        )
        return beside + self._tokens.text(text)


def _user_words_exceed(messages: Sequence[Message], budget_tokens: int) -> bool:
    of_user = (message for message in messages if message.get("role") == "user")
    parts = (part for message in of_user for part in spoken_parts(message))
    sizes = accumulate(len(part.text) for part in parts if part.source == "user")
    return any(size > budget_tokens * MOST_CHARS_PER_TOKEN for size in sizes)
