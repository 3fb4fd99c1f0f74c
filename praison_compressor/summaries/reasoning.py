"""Strip a model's reasoning from an answer, by its family's marks."""

from __future__ import annotations

import re
from typing import NamedTuple


class ReasoningMarks(NamedTuple):
    """Patterns before and after the reasoning of a model family."""

    opens: str
    closes: str
    closes_alone: bool = True
    """Whether `closes` also ends reasoning that `opens` did not open."""


_TAG_NAMES = (
    r"(?:\w{1,20}[:_-])?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflect(?:ion)?|analysis|cot|"
    r"antthinking|chain[_-]of[_-]thoughts?|scratch_?pad|reasoning_?(?:scratchpad|content)|"
    r"(?:inner_?)?monologue|rationale|deliberation|planning)"
    r"(?:_never_used_\w{1,40}|[_-](?:process|steps?|block|trace|chain|log)|:\w{1,20})?"
)

_THOUGHT = r"(?:think|thought|reason|analysis|reflect|scratch)"

REASONING_MARKS = (
    # An empty tag, without reasoning.
    ReasoningMarks(rf"<\s?{_TAG_NAMES}\s*/>", r"", closes_alone=False),
    # DeepSeek, Qwen, GLM, Seed, MiniMax, LongCat, EXAONE, Hermes, Claude's prompts: <think>;
    # Kimi: ◁think▷; Magistral: [THINK]; escaped by a web page: &lt;think&gt;.
    ReasoningMarks(
        rf"(?:[<◁]|&lt;|\[(?=\s?think))\s?{_TAG_NAMES}(?:\s[^<>\n]{{0,200}}?)?\s?(?:[>▷\]]|&gt;)",
        rf"(?:[<◁\[]|&lt;)\s?/\s?{_TAG_NAMES}\s*(?:[>▷\]]|&gt;)",
    ),
    ReasoningMarks(r"<!--\s{0,9}(?:think\w*|reasoning|thoughts?)\b", r"-->", closes_alone=False),
    # Open WebUI.
    ReasoningMarks(
        r"<details\s[^>\n]{0,80}type=[\"']reasoning[\"'][^>\n]{0,200}>|"
        rf"<details>\s*<summary>[^<\n]{{0,20}}{_THOUGHT}[^<\n]{{0,40}}</summary>",
        r"</details\s*>",
        closes_alone=False,
    ),
    # Solar.
    ReasoningMarks(
        r"<\|think\|>", r"<\|(?:/think|end|content)\|>(?:<\|begin\|>\w*)?", closes_alone=False
    ),
    # Command A, OpenThinker, Sky-T1, Apertus and other special tokens.
    ReasoningMarks(
        rf"<[|｜](?!/|end)(?:[\w▁]{{0,30}}{_THOUGHT}(?!\w*end)\w{{0,20}}|inner_prefix)[|｜]>",
        rf"<[|｜](?:(?:/|end)[\w▁]{{0,30}}{_THOUGHT}\w{{0,20}}|{_THOUGHT}\w{{0,10}}_?end|"
        r"inner_suffix)[|｜]>",
    ),
    # Gemma; MedGemma; Pangu.
    ReasoningMarks(r"<\|channel>\s*(?:thought|analysis)\b", r"<channel\|>"),
    ReasoningMarks(r"<unused94>", r"<unused95>"),
    ReasoningMarks(r"\[unused16\]", r"\[unused17\]"),
    # s1.
    ReasoningMarks(r"<\|im_start\|>\s*think", r"<\|im_start\|>\s*(?:final )?answer"),
    # LibreChat; Ollama's terminal; a fence.
    ReasoningMarks(r"^:::\s?(?:thinking|reasoning)\b", r"^:::\s*$", closes_alone=False),
    ReasoningMarks(r"\AThinking\.{3}\s*\n", r"^\.{3}\s?done thinking\.", closes_alone=False),
    ReasoningMarks(
        r"(?<!`)```(?:thinking|think|thoughts?|reasoning)\s*\n", r"^```\s*$", closes_alone=False
    ),
    # Granite; agents that answer in steps; headings.
    ReasoningMarks(
        r"\A\W*Here(?:['’]s| is) my (?:thought process|thinking|reasoning)(?: process)?:",
        r"Here(?:['’]s| is) my (?:final )?(?:response|answer|summary):",
        closes_alone=False,
    ),
    ReasoningMarks(
        r"\A\W*Thought:\s(?=.*^\W*Final Answer:)", r"^\W*Final Answer:", closes_alone=False
    ),
    ReasoningMarks(
        r"\A\W*(?:thinking|reasoning|thought process|thoughts)\W*\n"
        r"(?=.*^\W*(?:final answer|answer|response|summary)\W*\n)",
        r"^\W*(?:final answer|answer|response|summary)\W*$",
        closes_alone=False,
    ),
)

_FLAGS = re.IGNORECASE | re.DOTALL | re.MULTILINE

# A tag in backticks or quotation marks is text.
_INLINE = (
    r"(?<!`)(?:``(?!`)[^\n]+?``|`[^`\n]+`)(?!`)|"
    r"[\"'“‘«](?:[<◁][^<>◁▷\n\"'“‘«]{1,80}[>▷]|\[[^\[\]\n]{1,20}\])[\"'”’»]"
)
_CODE = rf"(?<=.)```(?!(?:think|reason|thought)\w*\s*\n).*?```|{_INLINE}"

_OPENING_MARK = re.compile(
    f"{_CODE}|" + "|".join(f"(?P<o{n}>{marks.opens})" for n, marks in enumerate(REASONING_MARKS)),
    _FLAGS,
)

_CLOSINGS = "|".join(marks.closes for marks in REASONING_MARKS if marks.closes_alone)

_CLOSING_MARK = re.compile(f"{_CODE}|(?P<closed>{_CLOSINGS})", _FLAGS)

_NESTED = tuple(
    re.compile(f"{_INLINE}|(?P<opens>{marks.opens})|(?P<closes>{marks.closes})", _FLAGS)
    for marks in REASONING_MARKS
)

# The harmony format's answer. Some servers drop the brackets.
_FINAL = re.compile(
    r"(?<!`)<\|channel\|>\s*final\b[^\n]{0,40}?<\|message\|>|\A(?:assistant)?analysis.*assistantfinal",
    re.DOTALL,
)

_CHANNEL = re.compile(r"(?:<\|start\|>\w*)?\s*<\|channel\|>")

_ENDED = re.compile(r"<\|(?:end|return|call)\|>")

_SPECIAL = r"<[|｜][\w▁]{1,40}[|｜]>|</?s>|<eos>|<end_of_turn>"

_ANSWER_TAG = r"(?:final_?)?answer|response|summary|output|final|conclusion"

_WRAPPER = re.compile(
    rf"\A(?:(?:{_SPECIAL}|<(?:{_ANSWER_TAG})(?::\w+)?>)\s*)+|"
    rf"(?:\s*(?:{_SPECIAL}|</(?:{_ANSWER_TAG})(?::\w+)?>))+\s*\Z",
    re.IGNORECASE,
)

_FENCE = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)


def strip_reasoning(text: str) -> str:
    """Return the text without reasoning and without an outer fence."""
    text = _final_channel(text.strip())
    kept: list[str] = []
    at = 0
    while opening := _mark_outside_code(_OPENING_MARK, text, at):
        kept.append(text[at : opening.start()])
        at = _end_of_reasoning(_NESTED[int(str(opening.lastgroup)[1:])], text, opening.end())
    text = "".join([*kept, text[at:]])
    at = 0
    while closing := _mark_outside_code(_CLOSING_MARK, text, at):
        at = closing.end()
    text = _WRAPPER.sub("", text[at:].strip()).strip()
    fenced = _FENCE.match(text)
    return fenced.group(1).strip() if fenced else text


def _mark_outside_code(mark: re.Pattern[str], text: str, start: int) -> re.Match[str] | None:
    return next((match for match in mark.finditer(text, start) if match.lastgroup), None)


def _end_of_reasoning(nested: re.Pattern[str], text: str, start: int) -> int:
    depth, end = 1, len(text)
    for match in nested.finditer(text, start):
        if match.lastgroup == "opens":
            depth += 1
        elif match.lastgroup == "closes":
            depth, end = depth - 1, match.end()
            if depth == 0:
                break
    return end


def _final_channel(text: str) -> str:
    """Return a harmony answer's final channel, else the whole text."""
    finals = list(_FINAL.finditer(text))
    if not finals:
        return "" if _CHANNEL.match(text) else text
    return _ENDED.split(text[finals[-1].end() :])[0]
