"""Strip what a model thought before it wrote: a table of openings and closings, by family."""

from __future__ import annotations

import re
from typing import NamedTuple


class Thoughts(NamedTuple):
    """How a model family sets its reasoning apart."""

    opens: str
    closes: str
    half: bool = False
    """Whether a closing without an opening ends reasoning too."""


def _tag(names: str, *, half: bool = False) -> Thoughts:
    """Return the forms of a tag: angle brackets, triangles, square brackets."""
    return Thoughts(
        rf"(?:[<◁]|\[(?=\s?think))\s?(?:{names})\s?[>▷\]]",
        rf"[<◁\[]\s?/\s?(?:{names})\s*[>▷\]]",
        half,
    )


THOUGHTS = (
    # DeepSeek, Qwen, GLM, Kimi, Magistral, Seed, MiniMax; Claude's prompts; Hermes.
    _tag(r"(?:\w+:)?think", half=True),
    _tag(r"thinking|antthinking", half=True),
    _tag(r"thoughts?|reasoning|reasoning_scratchpad", half=True),
    _tag(r"reflection|analysis|scratchpad|inner_monologue"),
    # Open WebUI.
    Thoughts(r"<details\s[^>\n]{0,80}type=[\"']reasoning[\"'][^>\n]{0,200}>", r"</details\s*>"),
    # Command A.
    Thoughts(r"<\|START_THINKING\|>", r"<\|END_THINKING\|>", half=True),
    # OpenThinker, Sky-T1.
    Thoughts(r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>", half=True),
    # Apertus.
    Thoughts(r"<\|inner_prefix\|>", r"<\|inner_suffix\|>", half=True),
    # Gemma.
    Thoughts(r"<\|channel>\s*(?:thought|analysis)\b", r"<channel\|>", half=True),
    # Granite.
    Thoughts(r"\A\W*Here(?:'s| is) my thought process:", r"Here(?:'s| is) my response:"),
)
"""By family, after lower and upper case are made equal."""

_FLAGS = re.IGNORECASE | re.DOTALL

# What stands in backticks is spoken of; a fence round the whole answer is no code.
_INLINE = r"(?<!`)`[^`\n]+`(?!`)"
_CODE = rf"(?<=.)```.*?```|{_INLINE}"

_OPENED = re.compile(
    f"{_CODE}|" + "|".join(f"(?P<o{n}>{form.opens})" for n, form in enumerate(THOUGHTS)), _FLAGS
)

_CLOSED = re.compile(
    f"{_CODE}|(?P<closed>{'|'.join(form.closes for form in THOUGHTS if form.half)})", _FLAGS
)

_WITHIN = tuple(
    re.compile(f"{_INLINE}|(?P<opens>{form.opens})|(?P<closes>{form.closes})", _FLAGS)
    for form in THOUGHTS
)

# The channel of the harmony format that is meant for the reader; some servers drop its brackets.
_FINAL = re.compile(
    r"(?<!`)<\|channel\|>\s*final\b[^\n]{0,40}?<\|message\|>|\Aanalysis.*assistantfinal", re.DOTALL
)

_CHANNEL = re.compile(r"(?:<\|start\|>\w*)?\s*<\|channel\|>")

_ENDED = re.compile(r"<\|(?:end|return|call)\|>")

_WRAPPER = re.compile(
    r"\A(?:<\|(?:START_RESPONSE|START_TEXT|begin_of_solution)\|>|<(answer|response|summary)>)\s*"
    r"|\s*(?:<\|(?:END_RESPONSE|END_TEXT|end_of_solution|im_end|eot_id)\|>"
    r"|</(answer|response|summary)>)\s*\Z",
    re.IGNORECASE,
)

_FENCE = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)


def strip_reasoning(text: str) -> str:
    """Return the text without reasoning (closed, unclosed, half open, nested) and outer fence."""
    text = _final_channel(text.strip())
    kept: list[str] = []
    at = 0
    while opened := _outside_code(_OPENED, text, at):
        kept.append(text[at : opened.start()])
        at = _end_of(_WITHIN[int(str(opened.lastgroup)[1:])], text, opened.end())
    text = "".join([*kept, text[at:]])
    at = 0
    while closed := _outside_code(_CLOSED, text, at):
        at = closed.end()
    text = _WRAPPER.sub("", text[at:].strip()).strip()
    fenced = _FENCE.match(text)
    return fenced.group(1).strip() if fenced else text


def _outside_code(tag: re.Pattern[str], text: str, start: int) -> re.Match[str] | None:
    return next((found for found in tag.finditer(text, start) if found.lastgroup), None)


def _end_of(form: re.Pattern[str], text: str, start: int) -> int:
    """Return where reasoning ends: at its closing, else at the last closing, else with the text."""
    depth, end = 1, len(text)
    for found in form.finditer(text, start):
        if found.lastgroup == "opens":
            depth += 1
        elif found.lastgroup == "closes":
            depth, end = depth - 1, found.end()
            if depth == 0:
                break
    return end


def _final_channel(text: str) -> str:
    """Return what an answer in the harmony format says to its reader."""
    finals = list(_FINAL.finditer(text))
    if not finals:
        return "" if _CHANNEL.match(text) else text
    return _ENDED.split(text[finals[-1].end() :])[0]
