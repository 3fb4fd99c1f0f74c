"""The values of a sentence, and what a sentence does with them: it sets some, it drops others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .language import UNSPACED, any_of

# -------------------------------------------------------------- words, in seven languages


CORRECTS = any_of(
    r"instead(?! of)|(?:change|replace|update|rename|switch to|make) (?:it|that)|not .{1,40} but|"
    r"i meant|forget|(?:it|that) (?:should be|is now)|no longer|after all|(?:is|was) wrong|"
    r"(?:go|going|went|put|set|set it|change it|revert|return)(?: it)? back to|back to|revert to|"
    r"return to|rather than|changed? (?:my|our) minds?|on second thoughts?|move (?:it|that) to|"
    r"changed? from",
    r"statt|anstatt|anstelle|stattdessen|sondern|lieber|nicht mehr|ich meinte|soll(?:te)? doch|"
    r"zurück (?:auf|zu)|doch wieder",
    r"au lieu d\w*|à la place|plutôt|je voulais dire|finalement|revien[st] à|"
    r"reven(?:ir|ez|ons) à",
    r"en (?:lugar|vez) de|sino|ya no|mejor|quise decir|em vez de|melhor|"
    r"vuelve a|volvamos a|volver a|volte (?:a|para)|afinal",
    opening=r"(?:(?:no|wait|sorry|espera|attends|non|não)(?=\W*[\d,.:;!—–-])|nope|actually|"
    r"correction|scratch that|rather|hmm|oops|nein|doch|falsch|korrektur|pardon|en fait|perdón|"
    r"back|en realidad|na verdade)\b",
    other="^不[,，、 ]|^不对|^不是|^错了|^算了|改用|改成|改为|改到|改回|换成|换回|恢复|还是用|"
    "而不是|不再用|应该是|更正|ではなく|じゃなく|の代わり|に変更|に変えて|に戻|やっぱり|やはり|訂正|"
    "^いや|^違",
)
ALTERS = any_of(
    r"move the|replace|(?:change|update)\b.{1,60}\bto|rename|switch to|should be|is now|"
    r"instead of|from now on",
    r"ändere|ersetze|wechsle|remplace[rz]?|cambia|reemplaza|troque",
)
"""Words that order a change: of what was said, or of what was never spoken of."""
DROPS = any_of(
    r"instead of|rather than|in place of|not|no longer|stop using|don'?t use|forget|drop|isn't",
    r"statt|anstatt|anstelle von|nicht|nicht mehr|au lieu d\w*|plutôt que|pas|plus",
    r"en (?:lugar|vez) de|ya no|(?<=, )no|em vez d\w+|ao invés d\w+|(?<=, )não",
    other="而不是|不要用|不是|不再用|别用|不用|代替",
)
"""Words before a value that a correction does away with."""
DROPS_BEFORE_IT = any_of(
    r"is (?:wrong|out|gone|a mistake)|was (?:wrong|a mistake)|no longer|is no longer",
    r"ist falsch|war falsch|gilt nicht|n'est plus|ya no|está mal",
    other="ではなく|じゃなく|の代わり|をやめ|不再|不对",
)
"""The same behind it."""
CHANGES = any_of(
    r"change|from|replace|replacing|update|rename|switch|move|swap",
    r"ändere|ersetze|wechsle|von|vom|remplace[rz]?|de|du|cambia|reemplaza|troque",
    other="从|把|将|から",
)
TO = any_of(
    r"to|with|by|into",
    r"auf|zu|in|durch|à|par|a|por|con|para",
    other="->|→|=>|改成|改为|改到|换成|变成|到|を|から|→",
)
"""Words between what is changed and what it is changed to."""
_SETTERS = (
    r"use|using|set|sets|is|are|be|make(?! an?| sure)|defaults?|call (?:it|them)|name|pick|choose|"
    r"nimm|nutze|verwende|setze?|ist|sei|nenne|heißt|utilise[rz]?|mets|usa|pon|sea"
)
SETS = any_of(_SETTERS, other="=|用|设为|设置为|叫做|に設定|を使|にして")
SETTER_ENDS = any_of(_SETTERS, r"to|auf|à|par|a|por", other="=|用|设为|设置为|叫做")
"""Behind the last of them stands the value that is set."""
PLACES = any_of(
    r"in|with|about|on|at|for|of|from|like",
    r"für|bei|von|mit|dans|sur|pour|avec|en|em|para|con|sobre",
)
"""Words before what a sentence only speaks of: "be careful with a.py" sets nothing."""
ADDS = any_of(
    r"also|as well|too|another|next|then|additionally|both",
    r"auch|außerdem|zusätzlich|noch ein\w*|dann|aussi|ensuite|également",
    r"también|además|luego|também",
    other="另外|还有|此外|同时|然后|また|さらに|も追加",
)
FILLER = frozenset(
    "the and for use with you can that this please now not but from have set should make are was "
    "will just instead actually sorry change switch let want need use using into its our your no "
    "rather wait correction meant forget update replace now longer must since "
    "rename move changed mind back after all again revert return going than "
    "der die das den dem ein eine und für mit von nicht doch soll sollte bitte jetzt statt anstatt "
    "auf ändere ersetze wechsle sondern nimm nutze verwende noch auch nein lieber zurück wieder "
    "les des une pour avec pas plutôt lieu utilise finalement reviens "
    "remplace cambia reemplaza los las una del por con para usa mejor lugar vez vuelve "
    "不要 要用 改用 改成 改为 换成 改回 换回 恢复 还是 是用 请用 使用 "
    "应该 该是 而不 不是 必须 设为 设置 变更 変更".split()
)
"""Words that say nothing of what a sentence is about."""


# -------------------------------------------------------------- claims


_LETTER = rf"[^\W{UNSPACED}]"
_VALUE = re.compile(
    rf"https?://[^\s\"'<>{UNSPACED}、。，]+|(?<!\w)([\"'`])[^\"'`\n]{{1,60}}\1(?!\w)|[「“][^」”\n]{{1,60}}[」”]"
    rf"|(?<![\w.])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?!\w|,\d)|(?:[~./@#:+%-]|{_LETTER})*{_LETTER}%?"
)
_NUMBER = re.compile(r"v?\d+(?:[.,]\d+)*(?:[a-zA-Z%]{1,3})?")
_ENDING = re.compile(r"\.\w{1,5}$")
_NAME = re.compile(r"[_\d-]|[a-z][A-Z]")
# Of scripts without spaces two neighbouring signs stand for a word.
_WORD = re.compile(rf"[^\W\d_{UNSPACED}]{{3,}}|[\u30a0-\u30ff]{{3,}}|(?=([\u3400-\u9fff]{{2}}))")
NEAR_CHARS = 30
"""How far from a value the words may stand that say what it is."""


class Claim(NamedTuple):
    """What a sentence says of values."""

    message: int
    text: str
    values: Mapping[str, str]
    """What it sets or names, with their kinds."""
    drops: frozenset[str]
    """What it names as no longer wanted."""
    topic: frozenset[str]
    """The words that say what it is about."""
    corrects: bool
    """It opens or ends as an answer to what was said: "no", "I meant", "instead"."""
    changes: bool
    """It orders a change, of whatever it names: "rename", "switch to", "should be"."""
    sets: frozenset[str]
    """The value behind the word that sets it: before it stands what is set, behind it where."""
    frame: str
    """The sentence with that value left out."""


def claim_of(message: int, text: str) -> Claim | None:
    """What a sentence says of values, or None if it names none."""
    named = values_of(text)
    if not named:
        return None
    corrects = bool(CORRECTS.search(text))
    changes = bool(ALTERS.search(text)) and not ADDS.search(text)
    drops = _dropped(text, named) if corrects or changes else frozenset[str]()
    values = {value: kind for value, kind in named.items() if value not in drops}
    sets, frame = _set_value(text, values, changes)
    topic = topic_of(text, named)
    return Claim(message, text, values, drops, topic, corrects, changes, sets, frame)


def _set_value(text: str, values: Iterable[str], changes: bool) -> tuple[frozenset[str], str]:
    """What a sentence sets, and its words without that."""
    # "Look at part 3" and "look at part 4" are two requests; only what was *set* can be set anew.
    if not (changes or SETS.search(text)) or ADDS.search(text) or text.endswith("?"):
        return frozenset(), text
    setter = max((found.end() for found in SETTER_ENDS.finditer(text)), default=len(text))
    at, value = min(
        (pair for value in values if (pair := (text.rfind(value), value))[0] >= setter),
        default=(setter, ""),
    )
    if not value or PLACES.search(text[setter:at]):
        return frozenset(), text
    words = re.findall(r"\w+", f"{text[:at]} {text[at + len(value) :]}".lower())
    return frozenset([value]), " ".join(word for word in words if word not in FILLER)


def _dropped(text: str, values: Mapping[str, str]) -> frozenset[str]:
    """The values that a correction names as what shall no longer be."""
    places = sorted((text.find(value), value) for value in values)
    out: set[str] = set()
    last = 0
    for number, (start, value) in enumerate(places):
        end = start + len(value)
        before = text[max(last, start - NEAR_CHARS) : start]
        last_one = number + 1 == len(places)
        behind = text[end : len(text) if last_one else places[number + 1][0]]
        becomes = not last_one and _begins(TO, behind) and not _ends(TO, before)
        changed = becomes and CHANGES.search(text[:start])
        if changed or _ends(DROPS, before) or _begins(DROPS_BEFORE_IT, behind):
            out.add(value)
        last = end
    # "Change TIMEOUT to 45" drops no name: what comes in its place is a number.
    kept = {kind for value, kind in values.items() if value not in out}
    return frozenset(value for value in out if not kept or values[value] in kept)


def _ends(words: re.Pattern[str], text: str) -> bool:
    """Whether one of the words stands at the end of the text, or a few words before it."""
    ends = [found.end() for found in words.finditer(text)]
    return bool(ends) and re.fullmatch(r"(?:[^ ,;:]* ?){0,4}", text[ends[-1] :]) is not None


def _begins(words: re.Pattern[str], text: str) -> bool:
    found = words.search(text)
    return found is not None and not text[: found.start()].strip()


def topic_of(text: str, values: Iterable[str] = ()) -> frozenset[str]:
    """The words that say what a sentence is about, its values left out."""
    for value in values:
        text = text.replace(value, " ")
    words = (found[1] or found[0] for found in _WORD.finditer(text.lower()))
    return frozenset(word for word in words if word not in FILLER)


def alike(one: str, other: str) -> bool:
    """Whether two values of one kind are written alike: a port is no percentage.

    >>> alike("8080", "9090"), alike("8080", "5"), alike("30s", "8080")
    (True, False, True)
    """
    words = not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other))
    return words or abs(len(one) - len(other)) <= 1


def values_of(text: str) -> dict[str, str]:
    """The values of a sentence with their kind: what a correction can replace."""
    out: dict[str, str] = {}
    for found in _VALUE.finditer(text):
        value = found.group().rstrip(".,;:!?")
        kind = _value_kind(value)
        if kind:
            out[value] = kind
    return out


def _value_kind(value: str) -> str | None:
    if value[0] in "\"'`「“":
        return "quoted"
    if "://" in value:
        return "url"
    if _NUMBER.fullmatch(value):
        return "number"
    if "/" in value or _ENDING.search(value):
        return "path"
    return "name" if _NAME.search(value) or (value.isupper() and len(value) > 2) else None
