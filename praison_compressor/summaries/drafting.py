"""A model's own text for a brief: in one call, or in parts that are merged where its window is too
small.

Every message is shown in exactly one part, and `Asker.parts` says how many were shown in each. One
that is too long is shown by its head, its tail and the lines between that tell most.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..config import Event
from ..errors import SummarizerUnavailable, SummaryError
from ..facts.identifiers import Classifier
from ..facts.outcomes import errors_in
from ..messages import Message, steps
from ..tokens.counter import TokenCounter
from ..tokens.models import bare_names
from .litellm_client import REFUSED
from .prompts import Wish, merge_request, prefix_request, rendering, request
from .protocol import Brief
from .retries import Asker

logger = logging.getLogger(__name__)

WINDOW_MARGIN = 0.9  # the summarizer may count tokens otherwise than we do

LEAST_SPACE = 0.25  # of its window for the transcript: with less, parts become many and small

LEAST_PROSE = 50  # tokens


class Piece(NamedTuple):
    """A text to be shown, how many messages it is, and its tokens: at most so many, 0 if nobody
    has counted them."""

    text: str
    messages: int = 1
    tokens: int = 0


SummaryRequest = Callable[[Sequence[Piece]], "list[Message]"]
"""Makes the chat messages that ask for a summary of what it is given."""


@dataclass(frozen=True)
class Drafter:
    """Fits what a brief shows to the summarizer's window, and asks."""

    asker: Asker
    tokens: TokenCounter

    async def draft(self, brief: Brief) -> str:
        """The text. A refusal as too long is learned from, and the parts are cut smaller.

        Raises:
            SummaryError: there is none.
        """
        while True:
            window = self.asker.window
            try:
                return await self._drafted(brief)
            except SummarizerUnavailable:
                if self.asker.window == window:
                    raise

    async def _drafted(self, brief: Brief) -> str:
        self.asker.parts, self.asker.most = [len(brief.shown)], 2 * brief.prose
        text = await self._on_prefix(brief)
        if text is not None:
            return text
        tokens = await asyncio.to_thread(self._counter)
        brief, make, parts = await asyncio.to_thread(self._in_parts, brief, tokens)
        if len(parts) == 1:
            return await self.asker.text(make(parts[0]), tokens)
        texts, self.asker.parts = [], [sum(piece.messages for piece in part) for part in parts]
        # One after another: all might be refused for their size, or fail as the first does.
        for number, part in enumerate(parts, 1):
            texts.append(await self.asker.text(make(part), tokens))
            told = {"part": number, "parts": len(parts), "messages": self.asker.parts[number - 1]}
            self.asker.emit(Event("part_summarized", self.asker.session_id, told))
        return await self._merged(texts, brief, tokens)

    def _counter(self) -> TokenCounter:
        """What counts for the model that is asked: what was learned of the agent's own model is
        about no other."""
        name, own = self.asker.model_name, self.tokens
        if _is_same_model(name, self.asker.config.model) or (name is None and own.ratio >= 1):
            return own
        return TokenCounter(name or self.asker.config.model)

    # -------------------------------------------------------------- on the live prefix

    async def _on_prefix(self, brief: Brief) -> str | None:
        """The text, asked on the agent's live prefix; None: ask in the ordinary way."""
        mine = _is_same_model(self.asker.model_name, self.asker.config.model)
        if (
            brief.prefix is None
            or not mine
            or not getattr(self.asker.summarizer, "takes_tools", False)
        ):
            return None
        tools = brief.prefix.tools
        asked = prefix_request(brief.prefix, self._wish(brief))
        size = self.tokens.messages(asked) + self.tokens.tools(tools) + 2 * brief.prose
        window = self.asker.window
        if window is not None and size > window * WINDOW_MARGIN:
            return None
        try:
            return await self.asker.text(asked, self.tokens, tools)
        except SummaryError as error:
            if getattr(error, "kind", "provider") not in ("provider", REFUSED):
                raise  # the ordinary request would meet the same: no network, no key, no time
            logger.info("no summary on the live prefix, asked without it: %s", error)
            return None

    # -------------------------------------------------------------- in parts

    def _in_parts(
        self, brief: Brief, tokens: TokenCounter
    ) -> tuple[Brief, SummaryRequest, list[list[Piece]]]:
        """The brief asking for no more prose than the model's window has room for, what makes a
        request, and the texts for each, as many as that window asks.

        Raises:
            SummarizerUnavailable: no room, or calls that would show next to nothing of it all.
        """
        window, groups = self.asker.window, _by_step(brief.shown, tokens)
        make = self._request(brief, brief.folded or brief.earlier)
        longest = self.asker.config.shown_message_tokens
        if window is None:
            return brief, make, packed(groups, tokens.texts, longest=longest)
        room = _room(window, self._request(brief, ()), tokens)
        # To merge, it reads two texts of twice the length asked for, and writes a third.
        longest_prose = room // 6
        if longest_prose < LEAST_PROSE:
            raise SummarizerUnavailable(
                f"it reads and writes {window} tokens, and the instructions leave no room; name an "
                "auxiliary model that reads more at once",
                kind="context",
            )
        brief = replace(brief, prose=min(brief.prose, longest_prose))
        self.asker.most = 2 * brief.prose
        make = self._request(brief, brief.folded or brief.earlier)
        space = _room(window, make, tokens) - self.asker.most
        if space < window * LEAST_SPACE:
            # Earlier summaries that leave no room: replaced ones are read like messages; the others
            # stay in the view and need not be shown.
            groups = [*([Piece(text, messages=0)] for text in brief.folded), *groups]
            make, space = self._request(brief, ()), room - self.asker.most
        most = _affordable(self.asker.calls, (room - self.asker.most) // brief.prose)
        return brief, make, packed(groups, tokens.texts, longest=longest, space=space, most=most)

    def in_one(self, brief: Brief, make: SummaryRequest) -> tuple[list[Message], bool]:
        """One request that shows all messages, cut to what the model's window takes; and whether
        they are shown in it as they are to one who summarizes.

        Raises:
            SummarizerUnavailable: there is no room for them.
        """
        tokens, window = self._counter(), self.asker.window
        groups, longest = _by_step(brief.shown, tokens), self.asker.config.shown_message_tokens
        [whole] = packed(groups, tokens.texts, longest=longest)
        space = math.inf if window is None else _room(window, make, tokens) - self.asker.most
        if window is None or sum(piece.tokens for piece in whole) <= space:
            return make(whole), True
        if space < window * LEAST_SPACE:
            raise SummarizerUnavailable(f"no room in {window} tokens", kind="context")
        [part] = packed(groups, tokens.texts, longest=longest, space=int(space))
        return make(part), False

    def _request(self, brief: Brief, earlier: Sequence[str]) -> SummaryRequest:
        rolled, wish = bool(earlier and brief.folded), self._wish(brief)
        return lambda part: request(
            [piece.text for piece in part], wish, earlier=earlier, rolled=rolled
        )

    def _wish(self, brief: Brief) -> Wish:
        return Wish(brief.prose, brief.instructions, self.asker.config.summary_prompt)

    async def _merged(self, texts: list[str], brief: Brief, tokens: TokenCounter) -> str:
        """One summary out of consecutive partial ones, in rounds if they are many."""
        window, wish = self.asker.window, self._wish(brief)
        space = math.inf if window is None else int(window * WINDOW_MARGIN) - self.asker.most
        while len(texts) > 1 and self.asker.calls:
            taken = len(texts)
            while taken > 2 and tokens.messages(merge_request(texts[:taken], wish)) > space:
                taken -= 1
            merged = await self.asker.text(merge_request(texts[:taken], wish), tokens)
            texts = [merged, *texts[taken:]]
        return "\n\n".join(texts)


def _room(window: int, make: SummaryRequest, tokens: TokenCounter) -> int:
    """Tokens that the window has for what is shown and for the answer."""
    return int(window * WINDOW_MARGIN) - tokens.messages(make([Piece("")]))


def _affordable(calls: int, merged: int) -> int:
    """How many parts that many calls can read, and merge where one call takes `merged` texts."""
    merges = {n: -(-(n - 1) // (merged - 1)) for n in range(1, calls + 1)}
    return max((n for n in merges if n + merges[n] <= calls), default=1)


def _is_same_model(one: str | None, other: str | None) -> bool:
    """Whether two names, with or without their provider, mean one model."""
    return bool(one and other and set(bare_names(one)) & set(bare_names(other)))


# -------------------------------------------------------------- packing

Count = Callable[[Sequence[str]], "list[int]"]
"""Tokens of each of many texts."""

JOINED = 2
"""Tokens of what stands between two pieces."""

LEAST_SHOWN = 40
"""Tokens of each message below which a summary would be written from scraps."""

FILLED = 0.9
"""Share that a transcript fills of the parts it is cut for: they end between messages."""


LABEL = 8
"""Tokens that a message's text may have here beyond the message itself, for whose words it is."""


def _by_step(messages: Sequence[Message], tokens: TokenCounter) -> list[list[Piece]]:
    """The messages as text for a summarizer, those of one step in one group, with their tokens at
    most: the messages' own were counted before, and no token is less than a byte."""
    counted = zip(rendering(messages), tokens.each(tokens.cache.all(messages)), strict=True)
    pieces = [
        Piece(text, tokens=min(size + LABEL, len(text.encode("utf-8", "replace"))))
        for text, size in counted
    ]
    return [[pieces[index] for index in step] for step in steps(messages)]


def packed(
    groups: Sequence[Sequence[Piece]],
    count: Count,
    *,
    longest: int,
    space: int | None = None,
    most: int = 1,
) -> list[list[Piece]]:
    """Pieces of text packed into at most `most` requests of `space` tokens (None: one, of any
    number), in order.

    What stands in one group stays together where that makes hardly more parts than there must be.
    No piece is shown at more than `longest` tokens, and at fewer where it must be.

    Raises:
        SummarizerUnavailable: in so few parts next to nothing of each piece could be shown.
    """
    every = [piece for group in groups for piece in group]
    sizes = [piece.tokens + JOINED for piece in every]
    if not all(piece.tokens for piece in every) or (space is not None and sum(sizes) > space):
        sizes = [size + JOINED for size in count([piece.text for piece in every])]
    sized = iter(sizes)
    whole = [[piece._replace(tokens=next(sized)) for piece in group] for group in groups]
    if space is None:
        return [[_cut(piece, longest, count) for group in whole for piece in group]]
    longest = min(longest, space)
    while True:
        shown = [[_cut(piece, longest, count) for piece in group] for group in whole]
        sizes = [piece.tokens for group in shown for piece in group]
        fewest = min(most, math.ceil(sum(sizes) / space) + 1)
        parts = _in_turn(shown, space)
        if len(parts) > fewest:
            parts = _in_turn([[piece] for group in shown for piece in group], space)
        longest = min(
            _level(sizes, int(FILLED * space * fewest)), int(FILLED * max(sizes, default=0))
        )
        if len(parts) <= (most if longest < LEAST_SHOWN else fewest):
            return parts
        if longest < LEAST_SHOWN:
            raise SummarizerUnavailable(
                f"it can be shown {most * space} tokens in {most} requests, and {sum(sizes)} are "
                "to be summarized; name an auxiliary model that reads more at once",
                kind="context",
            )


def _in_turn(groups: Sequence[Sequence[Piece]], space: int) -> list[list[Piece]]:
    """Parts of whole groups, of whole pieces where a group is larger than the space."""
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

SPARE = 0.95
"""Of the characters that a text of even density could keep: lines with names are denser, and a
second cut reads it all again."""

EDGE = 3 / 8
"""Share of an abridged text for its head, and as much for its tail."""

LEAST_BETWEEN = 100  # characters: with less no line between is worth its place

LINE_CHARS = 200


def _level(sizes: Sequence[int], room: int) -> int:
    """The largest size to which all are cut that fit the room together."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return room // left
        room, left = room - size, left - 1
    return max(sizes, default=0)


def _cut(piece: Piece, longest: int, count: Count) -> Piece:
    shown, size, chars = piece.text, piece.tokens, len(piece.text)
    while size > longest and chars > 1:
        chars = int(SPARE * chars * longest / size)
        shown = abridged(piece.text, chars)
        size = count([shown])[0] + JOINED
    return Piece(shown, piece.messages, size)


def abridged(text: str, chars: int) -> str:
    """The text in about so many characters: head, tail and what tells most of what is between."""
    if len(text) <= chars:
        return text
    edge = int(chars * EDGE)
    middle = text[edge : len(text) - edge]
    lines = _telling(middle, chars - 2 * edge)
    left_out = f"{len(middle) - sum(map(len, lines))} characters left out"
    between = [f"[… {left_out}; lines from them with errors and names: …]", *lines, "[…]"]
    note = "\n".join(between) if lines else f"[… {left_out} …]"
    return f"{text[:edge]}\n{note}\n{text[len(text) - edge :]}"


def _telling(text: str, chars: int) -> list[str]:
    """Lines with errors, then those with the most names that none before has; in their order."""
    if chars < LEAST_BETWEEN:
        return []
    errors = {line.strip()[:LINE_CHARS] for line in errors_in(text)}
    classifier, seen = Classifier(), set[str]()
    worth: dict[str, tuple[bool, int]] = {}
    for line in dict.fromkeys(line.strip()[:LINE_CHARS] for line in text.split("\n")):
        names = classifier.names(line).keys() - seen
        seen |= names
        if line and (names or line in errors):
            worth[line] = line in errors, len(names)
    chosen = set()
    for line in sorted(worth, key=worth.__getitem__, reverse=True):
        if len(line) <= chars:
            chosen.add(line)
            chars -= len(line) + 1
    return [line for line in worth if line in chosen]
