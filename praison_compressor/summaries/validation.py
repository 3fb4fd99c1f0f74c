"""What of a model's answer may become a summary, and what must be refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import SummaryRejected
from ..facts import Facts
from ..facts.identifiers import Classifier
from ..messages import Message, text_of
from .brief import Brief
from .claims import sources
from .prompts import INSTRUCTIONS, without_summaries
from .protocol import SummaryReply
from .static import ADDED

__all__ = [
    "accept",
    "is_unrelated",
    "unreserved",
]


MANY_IDENTIFIERS = 10  # a segment with fewer may well be told without one of them


OWN_IDENTIFIERS = 3  # fewer that are not in the segment may be a model's own way to write a number


_OPENED = re.compile(r"<(think|thinking|reasoning|reflection|analysis|scratchpad)>", re.IGNORECASE)


_CLOSED = re.compile(r"</(?:think|thinking|reasoning)\s*>", re.IGNORECASE)


_FENCE = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)


_REFUSAL = re.compile(
    r"\A\W*(?:i['’]?m sorry|sorry|i (?:can(?:no|['’])t|cannot|am unable|won['’]t|will not)|"
    r"as an ai|unfortunately,? i|i (?:do not|don['’]t) (?:have|feel)|i['’]m (?:unable|not able))",
    re.IGNORECASE,
)


_ERROR = re.compile(
    r"\A\W*(?:error\b|an? (?:internal |unexpected )?error\b|exception\b|traceback\b|litellm\.|"
    r"rate limit|internal server error|service unavailable|\d{3} |https? ?\d{3}|"
    r"too many requests|request timed out|<!doctype|<html|\{\s*\"(?:error|detail)\")",
    re.IGNORECASE,
)


_CUT = frozenset({"length", "max_tokens", "model_length", "incomplete"})


_BLOCKED = frozenset({"content_filter", "refusal", "safety"})


_LONGEST = 1_000_000  # characters: more than any model writes, and not worth the time to read


_SHORT = 400  # characters: a refusal or an error text is short, a summary that mentions one is not


def accept(reply: SummaryReply, asked: Sequence[Message]) -> str:
    """The summary in a model's answer, without reasoning tags or fences.

    Raises:
        SummaryRejected: no text, empty, cut off, a refusal, an error text, a tool call, longer than
            any answer, or an echo of what was `asked`.
    """
    if not isinstance(reply.text, (str, type(None))):
        raise SummaryRejected("no text", f"the summarizer gave {type(reply.text).__name__}")
    if reply.finish_reason in _BLOCKED:
        raise SummaryRejected("refusal", f"the provider stopped with {reply.finish_reason}")
    if reply.finish_reason in ("tool_calls", "function_call"):
        raise SummaryRejected("tool call", "the model called a tool instead of writing")
    if len(reply.text or "") > _LONGEST:
        raise SummaryRejected("too long", f"{len(reply.text)} characters")
    text = _strip_reasoning(reply.text or "")
    if reply.finish_reason in _CUT:
        raise SummaryRejected("cut off", f"stopped by {reply.finish_reason}")
    if not re.search(r"\w", text):
        raise SummaryRejected("empty")
    if len(text) <= _SHORT and _REFUSAL.match(text):
        raise SummaryRejected("refusal", text[:80])
    if len(text) <= _SHORT and _ERROR.match(text):
        raise SummaryRejected("error text", text[:80])
    if _is_echo(text, asked):
        raise SummaryRejected("echo", "it repeats the request")
    return text


def _strip_reasoning(text: str) -> str:
    """The text without reasoning blocks, closed, unclosed or half open, and without a fence."""
    kept: list[str] = []
    at = 0
    while opened := _OPENED.search(text, at):
        kept.append(text[at : opened.start()])
        closing = re.compile(rf"</{opened[1]}\s*>", re.IGNORECASE)
        closed = closing.search(text, opened.end())
        at = closed.end() if closed else len(text)
    text = "".join([*kept, text[at:]])
    closed = _CLOSED.search(text)
    text = (text[closed.end() :] if closed else text).strip()
    fenced = _FENCE.match(text)
    return fenced.group(1).strip() if fenced else text


def _is_echo(text: str, asked: Sequence[Message]) -> bool:
    """Whether the answer is the request again, or a long stretch of it and nothing else.

    A summary that is handed over to be carried on may come back as it was: nothing new is to tell.
    """
    squeezed = _squeeze(text)
    if _squeeze(INSTRUCTIONS)[:200] in squeezed:
        return True
    if len(squeezed) <= 200:
        return False
    source = "\n".join(without_summaries(text_of(message)) for message in asked)
    # One word that is not in it is enough, and is found without squeezing a long request.
    words = sorted(set(squeezed.split(" ")), key=len, reverse=True)
    return all(word in source for word in words) and squeezed in _squeeze(source)


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def unreserved(text: str) -> str:
    """The model's text without headings that are the extractor's: it cannot speak for the user."""
    return _RESERVED.sub(lambda found: f"The summarizer writes: {found[1]}", text)


_RESERVED = re.compile(
    rf"^[^\w\n]{{0,20}}(the user said\b|{re.escape(ADDED[:30])})",
    re.IGNORECASE | re.MULTILINE,
)


def is_unrelated(text: str, brief: Brief, facts: Facts) -> bool:
    """Whether the text names things, and nothing that stands in what it should summarize.

    Prose without names may be an honest short summary: only names of its own convict a text.
    """
    if len(facts.identifiers) < MANY_IDENTIFIERS:
        return False
    named = {key.casefold() for key, *_ in Classifier().keys(text)}
    if len(named) < OWN_IDENTIFIERS:
        return False
    # One by one: most often the first ones tell.
    known = map(str.casefold, sources(brief))
    return not any(name in source for source in known for name in named)
