"""What of a model's answer becomes a summary, what is refused, which names in it are made up; its
claims, and the marks of those in doubt.

A model that summarizes makes up a file, a hash or an address now and then, and the agent has no
original left to tell. What a machine can know for certain is that a name stands nowhere in them.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from ..errors import SummaryRejected
from ..facts.coverage import ungrouped
from ..facts.identifiers import Classifier
from ..facts.language import UNSPACED
from ..messages import Message, text_of, tool_calls_of
from ..messages.display import in_words
from ..messages.shapes import encodable
from .prompts import INSTRUCTIONS, without_summaries
from .protocol import Brief, Doubt, SummaryReply
from .static import ADDED, RULES

# -------------------------------------------------------------- texts that are no summary

_LONGEST = 1_000_000  # characters: more than any model writes, and not worth the time to read

_LOOP = 20  # times that a text deflates which is the same again and again; a summary's do 4

_SHORT = 400  # characters: a refusal or an error text is short, a summary that mentions one is not

_STOPPED = {
    **dict.fromkeys(("content_filter", "refusal", "safety"), "refusal"),
    **dict.fromkeys(("tool_calls", "function_call"), "tool call"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "incomplete"), "cut off"),
}
"""Why an answer that ended for this reason is no summary."""

_REFUSAL = re.compile(
    r"\W*(?:i['’]?m sorry|sorry|i (?:can(?:no|['’])t|cannot|am unable|won['’]t|will not)|as an ai|"
    r"unfortunately,? i|i (?:do not|don['’]t) (?:have|feel)|i['’]m (?:unable|not able))",
    re.IGNORECASE,
)

_ERROR = re.compile(
    r"\W*(?:error\b|an? (?:internal |unexpected )?error\b|exception\b|traceback\b|litellm\.|"
    r"rate limit|internal server error|service unavailable|\d{3} |https? ?\d{3}|"
    r"too many requests|request timed out)",
    re.IGNORECASE,
)

_NO_PROSE = re.compile(r"<!doctype|<html|\{\s*\"(?:error|detail)\"", re.IGNORECASE)

_CALL = re.compile(
    r"<\|?(?:tool_?call|function_?call|function=|invoke\b|python_tag)|\[TOOL_CALLS\]|"
    r"(?:```\w*\s*)?[\[{\s]*\"(?:name|function|tool|arguments|tool_calls)\"\s*:",
    re.IGNORECASE,
)


def accept(reply: SummaryReply, asked: Sequence[Message]) -> str:
    """The summary in a model's answer, without reasoning tags or fences.

    Raises:
        SummaryRejected: no text, empty, cut off, a refusal, an error text, a tool call, longer than
            any answer, or an echo of what was `asked`.
    """
    if not isinstance(reply.text, (str, type(None))):
        raise SummaryRejected("no text", f"the summarizer gave {type(reply.text).__name__}")
    if reply.finish_reason in _STOPPED:
        raise SummaryRejected(_STOPPED[reply.finish_reason], f"it ended by {reply.finish_reason}")
    if len(reply.text or "") > _LONGEST:
        raise SummaryRejected("too long", f"{len(reply.text)} characters")
    text = strip_reasoning(encodable(reply.text or ""))
    if not re.search(r"\w", text):
        raise SummaryRejected("empty")
    if len(text) <= _SHORT and _REFUSAL.match(text):
        raise SummaryRejected("refusal", text[:80])
    if _CALL.match(text):
        raise SummaryRejected("tool call", text[:80])
    if _NO_PROSE.match(text) or (len(text) <= _SHORT and _ERROR.match(text)):
        raise SummaryRejected("error text", text[:80])
    if _is_echo(text, asked):
        raise SummaryRejected("echo", "it repeats the request")
    if len(text) > _SHORT and _LOOP * len(zlib.compress(text.encode())) < len(text.encode()):
        raise SummaryRejected("repetition", f"{len(text)} characters that repeat themselves")
    return text


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
    return all(word in source for word in squeezed.split(" ")) and squeezed in _squeeze(source)


def _squeeze(text: str) -> str:
    return " ".join(text.split())


# -------------------------------------------------------------- reasoning and fences

# What stands in backticks is spoken of; a fence round the whole answer is no code.
_CODE = r"(?<=.)```.*?```|`[^`\n]+`"

_THOUGHTS = r"(?:seed:)?think|thinking|thoughts?|reasoning"

_TAG = re.IGNORECASE | re.DOTALL

_OPENED = re.compile(
    rf"{_CODE}|(?:[<◁]|\[(?=\s?think))\s?"
    rf"({_THOUGHTS}|reflection|analysis|scratchpad)\s?[>▷\]]",
    _TAG,
)

_CLOSING = r"[<◁\[]\s?/\s?({})\s*[>▷\]]"

_CLOSED = re.compile(rf"{_CODE}|{_CLOSING.format(_THOUGHTS)}", _TAG)

# The channel of the harmony format that is meant for the reader; some servers drop its brackets.
_FINAL = re.compile(
    r"(?<!`)<\|channel\|>\s*final\b[^\n]{0,40}?<\|message\|>|\Aanalysis.*assistantfinal", re.DOTALL
)

_CHANNEL = re.compile(r"(?:<\|start\|>\w*)?\s*<\|channel\|>")

_ENDED = re.compile(r"<\|(?:end|return|call)\|>")

_FENCE = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)


def strip_reasoning(text: str) -> str:
    """The text without reasoning blocks, closed, unclosed or half open, and without a fence."""
    text = _final_channel(text.strip())
    kept: list[str] = []
    at = 0
    while opened := _outside_code(_OPENED, text, at):
        kept.append(text[at : opened.start()])
        closed = re.compile(_CLOSING.format(opened[1]), _TAG).search(text, opened.end())
        at = closed.end() if closed else len(text)
    text = "".join([*kept, text[at:]])
    closed = _outside_code(_CLOSED, text, 0)
    text = (text[closed.end() :] if closed else text).strip()
    fenced = _FENCE.match(text)
    return fenced.group(1).strip() if fenced else text


def _outside_code(tag: re.Pattern[str], text: str, start: int) -> re.Match[str] | None:
    return next((found for found in tag.finditer(text, start) if found[1]), None)


def _final_channel(text: str) -> str:
    """What an answer in the harmony format says to its reader; any other answer as it is."""
    finals = list(_FINAL.finditer(text))
    if not finals:
        return "" if _CHANNEL.match(text) else text
    return _ENDED.split(text[finals[-1].end() :])[0]


def unreserved(text: str) -> str:
    """The model's text without headings that are the extractor's: it cannot speak for the user."""
    return _RESERVED.sub(lambda found: f"The summarizer writes: {found[1]}", text)


_RESERVED = re.compile(
    rf"^[^\w\n]{{0,20}}((?:\[s\d[\d.]*\] ?)?user(?: allowed this, once)?:|the user said\b|"
    rf"{re.escape(ADDED[:30])}|{RULES[:15]})",
    re.IGNORECASE | re.MULTILINE,
)


# -------------------------------------------------------------- texts about something else

MANY_IDENTIFIERS = 10  # a segment with fewer may well be told without one of them

OWN_IDENTIFIERS = 3  # fewer that are not in the segment may be a model's own way to write a number

LEAST_TOLD = 1  # words and names of the source in a text about it

CHARACTERS_FOR_ONE_MORE = 100_000  # of the source: a line is no summary of a day's work


def is_about(text: str, asked: Sequence[Message]) -> bool:
    """Whether the text says something of what it was asked to summarize, in whatever language.

    Two of five of its words and names must stand there, or a third of its names where it is in
    another language; the more was shown, the more of them. One that names things, and nothing
    that stands in a source full of names, is about another conversation.
    """
    shown = "\n".join(map(in_words, asked))
    words = {word for word in _words(text) if f" {word}" not in _TALK}
    identifiers = {name.casefold() for name in Classifier().names(text)}
    if not words and not identifiers:
        return False
    source, known = shown.casefold(), " " + " ".join(set(_words(shown, whole=True)))
    written = (found[0] for found in _NAME.finditer(text))
    names = identifiers | {name.casefold() for name in written if not name[0].islower()}
    named = sum(name in source for name in names)
    told = named + sum(f" {word}" in known for word in words)
    if told < LEAST_TOLD + len(source) // CHARACTERS_FOR_ONE_MORE:
        return False
    if len(identifiers) >= OWN_IDENTIFIERS and not any(name in source for name in identifiers):
        return len(Classifier().names(shown)) < MANY_IDENTIFIERS
    return 5 * told >= 2 * len(words | names) or (named > 1 and 3 * named >= len(names))


def _words(text: str, *, whole: bool = False) -> Iterator[str]:
    """The stems of a text's words; pieces of them where no spaces part the words."""
    for word in _WORD.findall(text.casefold()):
        size = 2 if _PAIRED.match(word) else 4 if _RUN.match(word) else 0
        if size:
            yield from (word[at : at + size] for at in range(len(word) - size + 1))
        elif len(word) > 3:
            yield word if whole else word[: max(4, len(word) - 2)]


_PAIRED = re.compile(f"[{UNSPACED}]+")

_RUN = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+")  # Thai and its neighbours

# Vowel signs of Indian scripts are no letters to a regular expression.
_WORD = re.compile(
    rf"{_PAIRED.pattern}|{_RUN.pattern}|(?:[^\W\d_{UNSPACED}][\u0300-\u036f\u0900-\u0dff]*)+"
)

_NAME = re.compile(r"(?<!\w)\d{2,}(?!\w)|(?<=[\w,;:(] )[^\W\d_]\w{2,}")

# What is said of summaries, and by those who write none, tells nothing of a conversation.
_TALK = " " + " ".join(
    _words(
        INSTRUCTIONS
        + """
I apologize for any inconvenience; unfortunately I am not comfortable, cannot comply, am unable and
not allowed to assist or help with this request, feel free. Sorry, that would violate my guidelines,
content or usage policy and could not be processed, because it contains or may contain sensitive,
private, harmful, inappropriate material or information. As a language model, your assistant, I have
no access; is there something, anything else? Sure, certainly, understood, thank you, thanks, hello:
today I will be happy, glad to provide and write, generate a summary, an overview of this chat,
discussion, dialogue and context, here is what was discussed between the user and the assistant.
Please provide, insert, paste, share the document, article or text that you would like, want me to
summarize, then I can help, let me know if you need more. Nothing, none, null, true, false, okay,
placeholder, completed: based on their previous, above, following points, about which, therefore,
there were some, these, those, could, should, does, doesn't, when.
Tut mir leid, leider kann ich dieses diese Gespräch Unterhaltung Anfrage nicht zusammenfassen oder
bearbeiten, aber gerne helfen, bitte, hier ist eine Zusammenfassung, Entschuldigung, verstanden.
Désolé, je ne peux, puis pas résumer cette conversation, demande, mais voici un résumé, plaisir.
Lo siento, pero no puedo resumir esta conversación, solicitud, ayudar con este resumen, aquí, claro.
Desculpe, lamento, sinto muito, mas não posso, consigo resumir esta conversa, pedido, aqui está.
Mi dispiace, spiacente, ma non posso riassumere questa conversazione, richiesta, ecco il riassunto.
Het spijt mij, helaas, maar ik kan dit gesprek, verzoek niet samenvatten, hier is de samenvatting.
Przepraszam, niestety, ale nie mogę podsumować streścić tej rozmowy, prośby, oto podsumowanie.
Üzgünüm, maalesef, ama bu konuşmayı, sohbeti, isteği özetleyemem, yardımcı olamam, işte özet.
Извините, к сожалению, но я не могу обобщить, резюмировать этот разговор, беседу, запрос, вот.
آسف، عذرا، أعتذر، لكن لا يمكنني لا أستطيع تلخيص هذه المحادثة، الطلب، إليك الملخص
क्षमा करें, मुझे खेद है, लेकिन मैं इस बातचीत अनुरोध का सारांश नहीं सकता
抱歉，对不起，我无法不能为您总结概括这段对话内容请求，以下是摘要，好的，作为人工智能助手很遗憾提供帮助
申し訳ありませんが、申し訳ございません、この会話を要約することはできません。以下は要約です、ご依頼、お手伝い
죄송합니다, 죄송하지만 이 대화를 요약할 수 없습니다, 요청, 도와드릴 다음은 요약입니다
""",
        whole=True,
    )
)


# -------------------------------------------------------------- names that are made up

_KINDS = ("hash", "uuid", "url", "email", "id", "file", "number", "symbol")
"""What is looked for, the most harmful first. Folders, paths and dotted names are put together from
what is known; a path's own file is a name of its own here. Dates are written in many ways."""

_COUNTED = re.compile(r"\d+-[a-z]+(?:-[a-z]+)*", re.I)  # "a 10-minute wait", "the 8-step plan"

_AS_CODE = re.compile(r"`[^`\n]*`|\b\w+\(")

_HIDDEN = re.compile(r"~/\.[\w-]+\.[a-z]+$")


def ungrounded(text: str, brief: Brief, patterns: Mapping[str, str] | None = None) -> list[str]:
    """Names of the text that neither the transcript, the tools, nor earlier summaries have.

    `patterns` find a domain's own identifiers, as in `CompressorConfig.fact_patterns`; they come
    first. Deterministic, in time linear in what the summary was written from.
    """
    kinds = (*(patterns or {}), *_KINDS)
    found = Classifier(patterns).names(text)
    found |= {n[n.rindex("/") + 1 :]: "file" for n in found if _HIDDEN.search(n)}
    left = [name for name, kind in found.items() if kind in kinds and _is_made(name, kind, text)]
    for source, doubts in _sources(brief):
        plain = source.casefold()
        left = [n for n in left if n.casefold() in doubts or not _stand(n.casefold(), plain)]
    for of_kinds, change in _SPELLINGS:
        some = {name for name in left if found[name] in of_kinds}
        for source, doubts in _sources(brief) if some else ():
            plain = change(source)
            doubted = {n for n in some if n.casefold() in doubts}
            known = {n for n in some - doubted if _stands(change(n), plain, parted=False)}
            left = [n for n in left if n not in known]
    made: list[str] = []
    for name in sorted(left, key=lambda name: kinds.index(found[name])):
        # Another spelling, or a part, of what is doubted already is no second doubt.
        if not any(name.casefold() in other.casefold() for other in made):
            made.append(name)
    return made


def _is_made(name: str, kind: str, text: str) -> bool:
    """Whether a model must have it from somewhere: no count of things, no product's name."""
    if not name.isascii() or (kind == "id" and _COUNTED.fullmatch(name)):
        return False
    if kind != "symbol" or "_" in name:
        return True
    return any(name in found.group() for found in _AS_CODE.finditer(text))


def _stand(name: str, text: str) -> bool:
    """Whether the text has the name, or all that is put together in it: "HAT229+HAT266"."""
    bare = name.rstrip(",;.:")
    return _stands(bare, text) or (
        "+" in bare and all(_stands(one, text) for one in bare.split("+"))
    )


def _stands(name: str, text: str, *, parted: bool = True) -> bool:
    """Whether the text has the name, not as the end of a longer one, nor as its first digits."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        within = parted and at > 0 and text[at - 1].isalnum() and text[max(0, at - 2)] != "\\"
        if not within and not (name[-1:].isdigit() and text[end : end + 1].isdigit()):
            return True
        at = text.find(name, at + 1)
    return False


def _run_together(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


_SPELLINGS = ((("symbol", "id"), _run_together), (("number",), ungrouped))
"""`maxRetries` may be "max retries" there, and 2787 "2,787"."""


def _sources(brief: Brief) -> Iterator[tuple[str, set[str]]]:
    """The texts that a summary's names can be from, those that the model was shown first, each with
    the names that were doubted in it: these are from nowhere."""
    yield brief.visible, set()
    for text in chain(brief.folded, brief.earlier):
        marks = _NAMES.findall(text)
        yield text, {name.casefold() for names in marks for name in names.split(", ")}
    for message in chain(brief.messages, brief.originals):
        yield f"{text_of(message)} {message.get('name', '')}", set()
        for call in tool_calls_of(message):
            yield f"{call.name} {call.arguments}", set()
    yield json.dumps(brief.tools, ensure_ascii=False, default=str), set()


# -------------------------------------------------------------- claims


class Claim(NamedTuple):
    """A sentence or a list item, and where in the text it ends."""

    text: str
    end: int


_FENCED = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)", re.S | re.M)
# "3." may number an item, "SH-999." ends a sentence.
_SENTENCE = re.compile(
    r"(?:(?<=[^\d\s][.!?])|(?<=[A-Za-z$#-]\d[.!?])|(?<=\d{3}[.!?]))[\"'`*)]*\s+(?=[A-Z`\"*(])"
    r"|(?<=[。！？])"
)
_BULLET = re.compile(r"\s*(?:[-*•] |\d+[.)] )?\s*")


def claims_of(text: str) -> Iterator[Claim]:
    """The sentences and list items of a summary, in order; code in fences claims nothing."""
    bare_text = _FENCED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    at = 0
    for line in bare_text.split("\n"):
        bullet = _BULLET.match(line)
        start = bullet.end() if bullet else 0
        ends = (found.end() for found in _SENTENCE.finditer(line, start))
        cuts = [start, *(end for end in ends if not _is_open(line[start:end])), len(line)]
        for first, last in pairwise(cuts):
            piece = line[first:last].rstrip()
            if len(piece) > 3 and not line.lstrip().startswith("#"):
                yield Claim(piece, at + first + len(piece))
        at += len(line) + 1


def _is_open(text: str) -> bool:
    """Whether it ends within quotation marks or code: no place for a cut, nor for a mark."""
    return text.count('"') % 2 == 1 or text.count("`") % 2 == 1


# -------------------------------------------------------------- marks

NOT_THERE = "not in the originals"
"""Ends the mark of names that are made up."""

MOST_MARKS = 24
"""In one text, the contradicted first: one with more is not saved by a longer one."""

_NAMES = re.compile(rf"\[unverified: ([^\[\]\n]+?) (?:is|are) {NOT_THERE}\]")

MARK = re.compile(r"[ \t]*\[(?:unverified|contradicted(?: by s\d+\.\d+)?): [^\[\]\n]*\]")


def marked(text: str, doubts: Sequence[Doubt]) -> str:
    """The text with a mark behind each claim that is in doubt."""
    ranked = sorted(
        doubts, key=lambda doubt: (doubt.verdict != "contradicted", doubt.kind != "name")
    )
    for doubt in sorted(ranked[:MOST_MARKS], key=lambda doubt: -doubt.at):
        joint = " " if doubt.claim else "\n\n"
        text = f"{text[: doubt.at].rstrip()}{joint}{doubt.mark}{text[doubt.at :]}"
    return text


def unmarked(text: str) -> str:
    """The text without marks: a model may copy those of an earlier summary."""
    return MARK.sub("", text) if "[" in text else text


def marks_of(text: str) -> list[tuple[str, str]]:
    """The claims of a finished summary that bear a mark, each with its mark."""
    found: list[tuple[str, str]] = []
    for line in text.split("\n"):
        at = 0
        for mark in MARK.finditer(line):
            found.append((line[at : mark.start()].strip(), mark[0].strip()))
            at = mark.end()
    return found
