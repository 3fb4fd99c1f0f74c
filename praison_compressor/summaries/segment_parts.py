"""Ask for a long segment's summary in parts; merge the parts' summaries.

Every message is in exactly one part. A message that is too long keeps its beginning, its deciding
line and its end.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..errors import SummarizerUnavailable
from ..events import Event
from ..messages import Message, split_steps
from ..messages.shortening import common_limit
from ..quotes import deciding_line
from ..tokens.counter import TokenCounter
from ..tokens.models import bare_names
from .model_calls import MOST_REQUESTS, ModelCaller, NoUsableAnswer, Tally, window_too_small
from .prompts import SummaryRequest, render_messages, request_merge, request_summary
from .protocol import Brief

WINDOW_MARGIN = 0.9
"""Used share of the window: a provider may count more tokens than we do."""

LEAST_TRANSCRIPT_SHARE = 0.25
"""Share of the window for the transcript. A smaller share would give many small parts."""
LEAST_PROSE_TOKENS = 50
"""Shorter prose says too little."""
MOST_MESSAGE_TOKENS = 4_000


class Piece(NamedTuple):
    """A text to show to the model."""

    text: str
    tokens: int
    """Upper bound of the text's tokens."""
    messages: int = 1


# -------------------------------------------------------------- asking for the parts


@dataclass(frozen=True)
class Drafter:
    """Ask for a brief's prose, in parts if the window is small."""

    caller: ModelCaller
    tokens: TokenCounter

    async def draft(self, brief: Brief, tally: Tally) -> tuple[str, Tally]:
        """Return the model's text and the new tally.

        Raises:
            NoUsableAnswer: the model gave no usable text.
        """
        while True:
            window = self.caller.window
            try:
                return await self._draft_in_parts(brief, tally)
            except NoUsableAnswer as failure:
                if self.caller.window == window:
                    raise
                tally = failure.tally

    async def _draft_in_parts(self, brief: Brief, tally: Tally) -> tuple[str, Tally]:
        tokens, calls = await asyncio.to_thread(self._model_counter), MOST_REQUESTS - tally.calls
        window, texts = self.caller.window, list[str]()
        try:
            brief, parts = await asyncio.to_thread(plan_parts, brief, window, tokens, calls)
        except SummarizerUnavailable as error:
            raise NoUsableAnswer(error, tally) from error
        # Parts are asked for in sequence: after a failure the later parts are not asked for.
        for number, part in enumerate(parts, 1):
            request = _request_for(brief, [piece.text for piece in part])
            text, tally = await self.caller.ask(request, tokens, _answer_limit(brief), tally)
            texts.append(text)
            if len(parts) > 1:
                messages = sum(piece.messages for piece in part)
                data = {"part": number, "parts": len(parts), "messages": messages}
                self.caller.emit(Event("part_summarized", self.caller.session_id, data))
        return await self._merge_texts(texts, brief, tokens, tally)

    def _model_counter(self) -> TokenCounter:
        name, agents_model = self.caller.model_name, self.caller.config.model
        is_same = name and set(bare_names(name)) & set(bare_names(agents_model))
        # The learned ratio corrects counts for the agent's model only.
        if is_same or (name is None and self.tokens.ratio >= 1):
            return self.tokens
        return TokenCounter(name or agents_model)

    async def _merge_texts(
        self, texts: list[str], brief: Brief, tokens: TokenCounter, tally: Tally
    ) -> tuple[str, Tally]:
        window, limit = self.caller.window, _answer_limit(brief)
        space = math.inf if window is None else int(window * WINDOW_MARGIN) - limit
        while len(texts) > 1 and tally.calls < MOST_REQUESTS:
            for count in range(len(texts), 1, -1):
                request = request_merge(texts[:count], brief.prose_tokens, brief.instructions)
                if tokens.messages(request.messages) <= space:
                    break
            merged, tally = await self.caller.ask(request, tokens, limit, tally)
            texts = [merged, *texts[count:]]
        return "\n\n".join(texts), tally


def _request_for(brief: Brief, texts: Sequence[str]) -> SummaryRequest:
    size, domain = brief.prose_tokens, brief.instructions
    return request_summary(texts, size, domain, earlier=brief.earlier, folded=brief.folded)


def _answer_limit(brief: Brief) -> int:
    return 2 * brief.prose_tokens


# -------------------------------------------------------------- planning the parts


def plan_parts(
    brief: Brief, window: int | None, tokens: TokenCounter, calls: int
) -> tuple[Brief, list[list[Piece]]]:
    """Return a brief and parts that fit the window and `calls`.

    Raises:
        SummarizerUnavailable: window and calls are too small to show the messages.
    """
    groups = _group_by_step(brief.model_messages, tokens)
    if window is None:
        return brief, pack(groups, tokens.text)
    free_tokens = _free_tokens(window, replace(brief, folded=(), earlier=()), tokens)
    # The window of a request to merge must hold two texts and the answer. Each may be twice as long
    # as requested.
    longest_prose = free_tokens // 6
    if longest_prose < LEAST_PROSE_TOKENS:
        raise window_too_small(
            f"a window of {window} tokens has no tokens left beside the instructions"
        )
    shorter = replace(brief, prose_tokens=min(brief.prose_tokens, longest_prose))
    space_alone = free_tokens - _answer_limit(shorter)
    most_parts = _most_parts(calls, space_alone // shorter.prose_tokens)
    space = _free_tokens(window, shorter, tokens) - _answer_limit(shorter)
    if space >= window * LEAST_TRANSCRIPT_SHARE:
        return shorter, pack(groups, tokens.text, space=space, most_parts=most_parts)
    # Earlier summaries leave too few tokens. The request omits summaries that stay in the view, and
    # shows folded summaries as messages.
    folded = [[_count_piece(Piece(text, 0, 0), tokens.text)] for text in brief.folded]
    parts = pack([*folded, *groups], tokens.text, space=space_alone, most_parts=most_parts)
    return replace(shorter, folded=(), earlier=()), parts


def _free_tokens(window: int, brief: Brief, tokens: TokenCounter) -> int:
    empty = _request_for(brief, [""])
    return int(window * WINDOW_MARGIN) - tokens.messages(empty.messages)


def _most_parts(calls: int, texts_per_merge: int) -> int:
    merges = {n: -(-(n - 1) // (texts_per_merge - 1)) for n in range(1, calls + 1)}
    return max((n for n in merges if n + merges[n] <= calls), default=1)


JOINT_TOKENS = 2
"""Tokens between two pieces."""
LABEL_TOKENS = 8
"""Tokens of a speaker's label."""
LEAST_MESSAGE_TOKENS = 40
"""Shorter messages say nothing."""

FILL_SHARE = 0.9
"""Messages are shortened to fill this share of the parts. The parts are not filled wholly, because
each ends with a whole message."""


def _group_by_step(messages: Sequence[Message], tokens: TokenCounter) -> list[list[Piece]]:
    """Return the steps; each step has a piece for each message."""
    counted = zip(render_messages(messages), tokens.each(tokens.cache.all(messages)), strict=True)
    # Both the cached count and the text's bytes are upper bounds.
    pieces = [
        Piece(
            text, JOINT_TOKENS + min(size + LABEL_TOKENS, len(text.encode(errors="surrogatepass")))
        )
        for text, size in counted
    ]
    return [[pieces[index] for index in step] for step in split_steps(messages)]


def pack(
    groups: Sequence[Sequence[Piece]],
    count: Callable[[str], int],
    *,
    space: float = math.inf,
    most_parts: int = 1,
) -> list[list[Piece]]:
    """Return the pieces in at most `most_parts` parts of `space` tokens.

    If the pieces do not fit, groups are divided. If that is not enough, pieces are cut.

    Raises:
        SummarizerUnavailable: a piece would have fewer than LEAST_MESSAGE_TOKENS.
    """
    if sum(piece.tokens for group in groups for piece in group) > space:
        groups = [[_count_piece(piece, count) for piece in group] for group in groups]
    longest = int(min(MOST_MESSAGE_TOKENS, space))
    while True:
        shortened = [[_shorten_piece(piece, longest, count) for piece in group] for group in groups]
        divided = [[piece] for group in shortened for piece in group]
        for candidates in (shortened, divided):
            parts = _fill_parts(candidates, space)
            if len(parts) <= most_parts:
                return parts
        sizes = [piece.tokens for [piece] in divided]
        most_tokens = most_parts * space
        longest = min(
            common_limit(sizes, int(FILL_SHARE * most_tokens)), int(FILL_SHARE * max(sizes))
        )
        if longest < LEAST_MESSAGE_TOKENS:
            raise window_too_small(
                f"{most_parts} requests can show {most_tokens:.0f} of {sum(sizes)} tokens"
            )


def _count_piece(piece: Piece, count: Callable[[str], int]) -> Piece:
    return piece._replace(tokens=count(piece.text) + JOINT_TOKENS)


def _fill_parts(groups: Sequence[Sequence[Piece]], space: float) -> list[list[Piece]]:
    """Return parts of whole groups; divide groups larger than a part."""
    parts: list[list[Piece]] = [[]]
    left = space
    for group in groups:
        size = sum(piece.tokens for piece in group)
        for piece in group:
            if parts[-1] and (piece.tokens > left or (piece is group[0] and left < size <= space)):
                parts.append([])
                left = space
            parts[-1].append(piece)
            left -= piece.tokens
    return parts


# -------------------------------------------------------------- messages that are too long

CUT_SHARE = 0.95
"""A cut aims at this share of the limit, because a second cut would take time."""


def _shorten_piece(piece: Piece, longest: int, count: Callable[[str], int]) -> Piece:
    shortened, chars = piece, len(piece.text)
    while shortened.tokens > longest and chars > 1:
        chars = int(CUT_SHARE * chars * longest / shortened.tokens)
        shortened = _count_piece(piece._replace(text=abridge(piece.text, chars)), count)
    return shortened


EDGE_SHARE = 0.45
"""Share of an abridged text for each of its ends."""
LEAST_LINE_CHARS = 100
"""A shorter deciding line is left out."""


def abridge(text: str, chars: int) -> str:
    """Return a text's ends and deciding line, in about `chars` characters."""
    if len(text) <= chars:
        return text
    edge = int(chars * EDGE_SHARE)
    middle, line_chars = text[edge : len(text) - edge], chars - 2 * edge
    line = deciding_line(None, middle)[:line_chars] if line_chars >= LEAST_LINE_CHARS else ""
    line = f"{line}\n[…]\n" if line else ""
    note = f"[… {len(middle) - len(line)} characters left out …]\n{line}"
    return f"{text[:edge]}\n{note}{text[len(text) - edge :]}"
