"""Strip a model's reasoning from its answer, by its marks."""

from __future__ import annotations

import re
from typing import NamedTuple


class Thoughts(NamedTuple):
    """The patterns around the reasoning of a model family."""

    opens: str
    closes: str
    half: bool = True
    """Whether a closing without an opening ends reasoning, too."""


_TAG_NAMES = (
    r"(?:\w{1,20}[:_-])?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflect(?:ion)?|analysis|cot|"
    r"antthinking|chain[_-]of[_-]thoughts?|scratch_?pad|reasoning_?(?:scratchpad|content)|"
    r"(?:inner_?)?monologue|rationale|deliberation|planning)"
    r"(?:_never_used_\w{1,40}|[_-](?:process|steps?|block|trace|chain|log)|:\w{1,20})?"
)

_THOUGHT = r"(?:think|thought|reason|analysis|reflect|scratch)"

THOUGHTS = (
    # An empty tag, without reasoning.
    Thoughts(rf"<\s?{_TAG_NAMES}\s*/>", r"", half=False),
    # DeepSeek, Qwen, GLM, Seed, MiniMax, LongCat, EXAONE, Hermes, Claude's prompts: <think>;
    # Kimi: ◁think▷; Magistral: [THINK]; escaped by a web page: &lt;think&gt;.
    Thoughts(
        rf"(?:[<◁]|&lt;|\[(?=\s?think))\s?{_TAG_NAMES}(?:\s[^<>\n]{{0,200}}?)?\s?(?:[>▷\]]|&gt;)",
        rf"(?:[<◁\[]|&lt;)\s?/\s?{_TAG_NAMES}\s*(?:[>▷\]]|&gt;)",
    ),
    Thoughts(r"<!--\s{0,9}(?:think\w*|reasoning|thoughts?)\b", r"-->", half=False),
    # Open WebUI.
    Thoughts(
        r"<details\s[^>\n]{0,80}type=[\"']reasoning[\"'][^>\n]{0,200}>|"
        rf"<details>\s*<summary>[^<\n]{{0,20}}{_THOUGHT}[^<\n]{{0,40}}</summary>",
        r"</details\s*>",
        half=False,
    ),
    # Solar.
    Thoughts(r"<\|think\|>", r"<\|(?:/think|end|content)\|>(?:<\|begin\|>\w*)?", half=False),
    # Command A, OpenThinker, Sky-T1, Apertus and other special tokens.
    Thoughts(
        rf"<[|｜](?!/|end)(?:[\w▁]{{0,30}}{_THOUGHT}(?!\w*end)\w{{0,20}}|inner_prefix)[|｜]>",
        rf"<[|｜](?:(?:/|end)[\w▁]{{0,30}}{_THOUGHT}\w{{0,20}}|{_THOUGHT}\w{{0,10}}_?end|"
        r"inner_suffix)[|｜]>",
    ),
    # Gemma; MedGemma; Pangu.
    Thoughts(r"<\|channel>\s*(?:thought|analysis)\b", r"<channel\|>"),
    Thoughts(r"<unused94>", r"<unused95>"),
    Thoughts(r"\[unused16\]", r"\[unused17\]"),
    # s1.
    Thoughts(r"<\|im_start\|>\s*think", r"<\|im_start\|>\s*(?:final )?answer"),
    # LibreChat; Ollama's terminal; a fence.
    Thoughts(r"^:::\s?(?:thinking|reasoning)\b", r"^:::\s*$", half=False),
    Thoughts(r"\AThinking\.{3}\s*\n", r"^\.{3}\s?done thinking\.", half=False),
    Thoughts(r"(?<!`)```(?:thinking|think|thoughts?|reasoning)\s*\n", r"^```\s*$", half=False),
    # Granite; agents that answer in steps; headings.
    Thoughts(
        r"\A\W*Here(?:['’]s| is) my (?:thought process|thinking|reasoning)(?: process)?:",
        r"Here(?:['’]s| is) my (?:final )?(?:response|answer|summary):",
        half=False,
    ),
    Thoughts(r"\A\W*Thought:\s(?=.*^\W*Final Answer:)", r"^\W*Final Answer:", half=False),
    Thoughts(
        r"\A\W*(?:thinking|reasoning|thought process|thoughts)\W*\n"
        r"(?=.*^\W*(?:final answer|answer|response|summary)\W*\n)",
        r"^\W*(?:final answer|answer|response|summary)\W*$",
        half=False,
    ),
)
"""One row a family; upper and lower case are equal."""

_FLAGS = re.IGNORECASE | re.DOTALL | re.MULTILINE

# A tag in backticks or quotation marks is text. A fence around the whole answer is no code.
_INLINE = (
    r"(?<!`)(?:``(?!`)[^\n]+?``|`[^`\n]+`)(?!`)|"
    r"[\"'“‘«](?:[<◁][^<>◁▷\n\"'“‘«]{1,80}[>▷]|\[[^\[\]\n]{1,20}\])[\"'”’»]"
)
_CODE = rf"(?<=.)```(?!(?:think|reason|thought)\w*\s*\n).*?```|{_INLINE}"

_OPENING_MARK = re.compile(
    f"{_CODE}|" + "|".join(f"(?P<o{n}>{form.opens})" for n, form in enumerate(THOUGHTS)), _FLAGS
)

_CLOSING_MARK = re.compile(
    f"{_CODE}|(?P<closed>{'|'.join(form.closes for form in THOUGHTS if form.half)})", _FLAGS
)

_NESTED = tuple(
    re.compile(f"{_INLINE}|(?P<opens>{form.opens})|(?P<closes>{form.closes})", _FLAGS)
    for form in THOUGHTS
)

# The channel of the harmony format for the reader. Some servers drop its brackets.
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
    while opening := _outside_code(_OPENING_MARK, text, at):
        kept.append(text[at : opening.start()])
        at = _end_of(_NESTED[int(str(opening.lastgroup)[1:])], text, opening.end())
    text = "".join([*kept, text[at:]])
    at = 0
    while closing := _outside_code(_CLOSING_MARK, text, at):
        at = closing.end()
    text = _WRAPPER.sub("", text[at:].strip()).strip()
    fenced = _FENCE.match(text)
    return fenced.group(1).strip() if fenced else text


def _outside_code(tag: re.Pattern[str], text: str, start: int) -> re.Match[str] | None:
    return next((match for match in tag.finditer(text, start) if match.lastgroup), None)


def _end_of(form: re.Pattern[str], text: str, start: int) -> int:
    """Return the place where reasoning ends.

    It is the matching closing, else the last closing, else the end of the text.
    """
    depth, end = 1, len(text)
    for match in form.finditer(text, start):
        if match.lastgroup == "opens":
            depth += 1
        elif match.lastgroup == "closes":
            depth, end = depth - 1, match.end()
            if depth == 0:
                break
    return end


def _final_channel(text: str) -> str:
    """Return a harmony answer's part for the reader, another answer unchanged."""
    finals = list(_FINAL.finditer(text))
    if not finals:
        return "" if _CHANNEL.match(text) else text
    return _ENDED.split(text[finals[-1].end() :])[0]
