"""Read whether a refusal means length, and which window.

Words decide whether a refusal means length. A number counts if it is plausible for the size of the
request. A server's new wording is a new line in a table.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace

SMALLEST_WINDOW = 2_000
"""A refusal teaches no smaller window."""

COUNT_FACTOR = 1.5
"""Largest factor between the provider's count and ours."""


@dataclass(frozen=True)
class Overflow:
    """Numbers in a refusal for length; None: not named."""

    window: int | None
    prompt_tokens: int | None
    """The provider's count of the request."""
    answer_tokens: int | None = None
    """Tokens reserved for the answer."""
    certain: bool = True
    """Whether the refusal means nothing but length."""
    confirmed: bool = False
    """Whether the refusal names the request's size too, as we counted."""


# -------------------------------------------------------------- words


def _any_of(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE | re.DOTALL)


_CERTAIN = _any_of(
    r"(?:context|prompt|input|sequence|model)[ _](?:length|window|size|limit)[^.\d]{0,40}exceed",
    r"(?:exceed(?:s|ed)?|longer|larger|greater|too large)\b[^.\d]{0,60}\bcontext",
    r"(?:exceed(?:s|ed)?|longer|larger|greater|too large)\b[^.\d]{0,60}\btoken limit",
    r"(?:exceed(?:s|ed)?|longer|larger|greater|too large)\b[^.\d]{0,60}"
    r"\b(?:input|prompt|sequence|model|text) (?:length|size|tokens)",
    r"(?:exceed(?:s|ed)?|longer|larger|greater|too large)\b[^.\d]{0,60}"
    r"\bnumber of (?:input )?tokens",
    r"context (?:the )?overflow",
    r"maximum context",
    r"max(?:imum)? message tokens",
    r"max(?:imum)? (?:model|prompt|input|sequence) length",
    r"(?:prompt|inputs?|query|text|messages?|conversation) (?:is |are |was )?too (?:long|large)",
    r"range of input length",
    r"prompt exceeds max length|model max length",
    r"too many (?:input |prompt |total text )?tokens|too many total text bytes",
    r"(?:input|prompt) token count|input tokens exceed",
    r"inputs?`? (?:tokens|must have less)|max_new_tokens`? must be",
    r"reduce (?:the length of|your (?:prompt|message|input)|the (?:prompt|input))",
    r"tokens? in the prompt cannot exceed|total message (?:size|token)",
    r"上下文(?:长度|窗口)|输入(?:长度|内容|文本)?(?:过长|超)|(?:prompt|输入).{0,6}(?:过长|超长|超过)",
)
"""Words that mean length with any status."""

_POSSIBLE = _any_of(
    r"too (?:long|large|big|many)|exceed|oversized|shorten|truncat",
    r"tokens?\b|max(?:imum|_)? ?(?:length|size)|\blimit|\blength|\bcontext\b|\bsize\b",
    r"payload|entity",
    r"长度|超过|超出|过长",
)
"""Words that can mean length if the status is that of a refused request."""

_NOT_LENGTH = _any_of(
    r"array too long|array_above_max",
    r"too many (?:images|tools|functions|stop|files|parameters)",
    r"max_(?:completion_|output_)?tokens\W{0,3} (?:is too large|must be|should be|cannot|exceed)",
    r"(?:supports|allows) at most \d+ (?:completion|output)|budget_tokens",
    r"maximum allowed number of output tokens",
    r"invalid '(?!input|messages|prompt|contents)[\w.\[\]]+': (?:string|array) too long",
    r"\btools?\[|\.name\b|function name|tool_call_id|schema|stop sequence",
    r"temperature|top_p|image|audio|metadata",
    r"content[ _]policy|api[ _]key",
    r"'role'|alternate|unknown parameter|unrecognized|unsupported",
)
"""Words about something else than the length of the messages."""

_THROTTLE = _any_of(
    r"rate[ _-]?limit|throttl|too many requests|slow down|\bservice unavailable:",
    r"(?:tokens|requests) per (?:min|day|hour|sec)|per[- ]minute|\b[TR]P[MD]\b",
    r"(?:try(?:ing)? again|retry) (?:in|after)|wait before",
    r"quota|(?:monthly|daily|weekly) |billing|credits?\b|insufficient (?:balance|funds)",
)
"""Words about limits of a time or a bill."""

_PER_MINUTE = re.compile(
    r"limit\D{0,12}(\d[\d,_]*)\b(?:(?!used).){0,40}?requested\D{0,12}(\d[\d,_]*)",
    re.IGNORECASE | re.DOTALL,
)
"""Matches a limit per minute, and the tokens of one request."""

_CLIENT_WORDS = re.compile(
    r"\w*(?:Error|Exception)\b|\b(?:litellm|None|no body|status|code|error|message|type|param|null"
    r"|bad request|invalid_request_error|received|body)\b|\d",
    re.IGNORECASE,
)
"""What clients write around a server's words."""

_REFUSED_STATUSES = frozenset((400, 413, 422))

_REFUSED_CLASSES = frozenset(
    "BadRequestError ContextWindowExceededError UnprocessableEntityError RequestTooLargeError "
    "InvalidRequestError ValidationException".split()
)

# -------------------------------------------------------------- numbers

_N = r"(\d[\d,_]*)"


def _compile(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Compile patterns of one number, the surest first."""
    return tuple(re.compile(p.replace("N", _N), re.IGNORECASE) for p in patterns)


_WINDOWS = _compile(
    r"tokens? > N (?:tokens )?max",
    r"context limit: \d+ \+ \d+ > N",
    r"must be <=? N",
    r"N maximum context length",
    r"maximum (?:model|prompt|input|sequence|allowed)[a-z ]{0,24} (?:length|size|tokens)?\D{0,8}N",
    r"max[a-z ]{0,12} (?:length|size)\D{0,8}N",
    r"context (?:length|window|size)[^\d]{0,40}?N",
    r"max(?:imum)? tokens of N",
    r"maximum (?:number of )?(?:input )?tokens (?:allowed )?\(?N",
    r"(?:exceeds?|over|above) (?:the )?(?:[a-z]+ ){0,3}N",
    r"(?:limit|maximum)\D{0,12}N",
    r"(?:only (?:supports?|accepts?|takes?)|up to|at most)\D{0,20}N",
)

_PROMPTS = _compile(
    r"resulted in N tokens",
    r"requested (?:about |a total of )?N tokens",
    r"context limit: N \+",
    r"request (?:has|contains) N (?:input )?tokens",
    r"given: N `?inputs",
    r"too long: N",
    r"request \(?N tokens",
    r"(?:token count|prompt length|input length|length|inputs?|prompt|current length|tokens|size)"
    r" (?:is |of |has )?\(?(?:length )?N",
    r"(?:requested|received|contains|got|actual|value)\W{0,3}N",
)

_EXCESS = _compile(r"(?:exceed\w*|over|longer)[^.\d]{0,40} by (?:about )?N")

# The first of `_PROMPTS` counts the requested answer too.
_ANSWER_PART = _compile(r"N(?: tokens)? (?:in|for) the (?:completion|output)")

_ANSWERS = (
    *_ANSWER_PART,
    *_compile(
        r"context limit: \d+ \+ N",
        r"requested N output tokens",
        r"is too large: N\. This model's maximum context",
        r"and N `?max_new_tokens",
        r"max_tokens \(N\)",
    ),
)

_NO_SIZE = re.compile(
    r"(?:error|code|status|http|line|port)[ _:='\"(]{1,6}\d+|(?<!max_tokens )\((?:2013|\d{3})\)"
    r"|\b(?:request[_ ]?id|req[_-]id|ref|id)\b['\"]?[=: ]+['\"]?[\w-]*\d[\w-]*"
    r"|\b(?:req|org|chatcmpl)[_-]\w+|\b[\da-f]{8}-[\da-f-]{20,}",
    re.IGNORECASE,
)
"""Numbers that are codes or identifiers."""


def overflow_of(
    error: BaseException, sent: int = 0, own_texts: Iterable[str] = ()
) -> Overflow | None:
    """Return what a refusal says of a request's length, or None.

    Args:
        error: what the client raised.
        sent: our count of the refused request, to check the numbers; 0: unknown.
        own_texts: texts of the request, which a refusal may repeat.
    """
    errors = list(error_chain(error))
    text = _clean_text(errors, own_texts)
    statuses = {status for error in errors for status in _statuses(error)}
    if 429 in statuses or _THROTTLE.search(text):
        return _minute_limit(text, sent)
    certain = bool(_CERTAIN.search(text))
    if not certain and not _can_mean_length(errors, statuses, text, sent):
        return None
    window = _first_number(_WINDOWS, text)
    answer = _first_number(_ANSWERS, text)
    prompt = _first_number(_PROMPTS, text, besides=(window, answer))
    included = _first_number(_ANSWER_PART, text)
    if prompt is not None and included is not None and prompt > included:
        prompt -= included
    return _check_numbers(Overflow(window, prompt, answer, certain), text, sent)


def _clean_text(errors: list[BaseException], own_texts: Iterable[str]) -> str:
    text = " ".join(map(_coded_text, errors))
    for own in own_texts:
        if len(own) >= LEAST_ECHO_CHARS:
            text = text.replace(own, " ").replace(own[:LEAST_ECHO_CHARS], " ")
    return _NO_SIZE.sub(" ", _REPEATED.sub(" ", text) if _FIELD.search(text) else text)


LEAST_ECHO_CHARS = 40
"""Shorter texts of the request are not removed."""

_FIELD, _REPEATED = re.compile(r"['\"]loc['\"]"), re.compile(r"['\"]input['\"]\s*:.*", re.DOTALL)
"""Marks of a validator's error, which repeats its input."""


def _minute_limit(text: str, sent: int) -> Overflow | None:
    match = _PER_MINUTE.search(text)
    if match is None:
        return None
    limit, prompt = map(_integer, match.groups())
    return _check_numbers(Overflow(limit, prompt), text, sent) if prompt > limit else None


def _can_mean_length(errors: list[BaseException], statuses: set[int], text: str, sent: int) -> bool:
    classes = {type(error).__name__ for error in errors}
    is_refused = statuses & _REFUSED_STATUSES or classes & _REFUSED_CLASSES
    if not is_refused or _NOT_LENGTH.search(text):
        return False
    is_silent = not re.search(r"\w", _CLIENT_WORDS.sub("", text))
    if 413 in statuses or is_silent or _POSSIBLE.search(text):
        return True
    return any(_is_near(number, sent) for number in _numbers(text))


def _is_near(number: int, sent: int) -> bool:
    """Return whether `number` may be the provider's count of `sent`."""
    return 0 < sent / COUNT_FACTOR <= number <= sent * COUNT_FACTOR


def _check_numbers(named: Overflow, text: str, sent: int) -> Overflow:
    """Return the refusal with the numbers that are plausible for `sent` tokens.

    A window is between half of the request and nearly all of it. A smaller window is plausible if
    the refusal names the request's size too.
    """
    numbers = {n for n in _numbers(text) if n >= SMALLEST_WINDOW}
    prompt, answer = named.prompt_tokens, named.answer_tokens or 0
    is_named = prompt is not None and _is_near(prompt, sent)
    if not is_named or (named.window is None and len(numbers) > 1):
        # The larger number is the request, perhaps with its answer.
        largest = max((n for n in numbers if _is_near(n, sent)), default=0)
        size = largest - answer if largest - answer in numbers else largest
        prompt = size if any(size / 2 <= n < size for n in numbers) else None
    size = sent if prompt is None else prompt
    excess = _first_number(_EXCESS, text)
    windows = [named.window if excess is None else size - excess]
    windows += sorted(numbers - {prompt, excess, answer}, reverse=True)
    for place, window in enumerate(windows):
        least = 0 if is_named and place == 0 else size / 2
        if window is not None and max(SMALLEST_WINDOW, least) <= window < size + answer:
            is_confirmed = prompt is not None
            return replace(named, window=window, prompt_tokens=prompt, confirmed=is_confirmed)
    return replace(named, window=None, prompt_tokens=prompt)


# -------------------------------------------------------------- an error's text


def error_chain(error: BaseException, *, contexts: bool = False) -> Iterator[BaseException]:
    """Yield an error and its causes; with `contexts` also its contexts."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        # `from None` hides contexts.
        is_shown = contexts and not link.__suppress_context__
        link = link.__cause__ or (link.__context__ if is_shown else None)


def error_text(error: BaseException) -> str:
    """Return an error's text, also if `__str__` fails."""
    try:
        return str(error)
    except Exception:
        return "without a text"


def _coded_text(error: BaseException) -> str:
    code = getattr(error, "code", None)
    return f"{type(error).__name__} {code if isinstance(code, str) else ''} {error_text(error)}"


def _statuses(error: BaseException) -> Iterator[int]:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "http_status", "code"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool):
                yield status


def _integer(text: str) -> int:
    return int(re.sub(r"[,_]", "", text))


def _numbers(text: str) -> Iterator[int]:
    # A number needs no spaces around it: Chinese has none.
    for match in re.finditer(r"(?a)(?<![\w.])\d[\d,_]*(?![\w]|\.\d)", text):
        yield _integer(match[0].rstrip(",_"))


def _first_number(
    patterns: tuple[re.Pattern[str], ...], text: str, besides: Container[int | None] = ()
) -> int | None:
    matches = (match for pattern in patterns for match in pattern.finditer(text))
    return next((n for match in matches if (n := _integer(match[1])) not in besides), None)
