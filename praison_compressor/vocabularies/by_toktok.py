"""OpenAI's vocabularies counted by toktok, where it is installed: as tiktoken does, but sooner.

It is a young package, so tiktoken stays the reference. toktok is tried on texts of known counts
before it is believed; texts that hold characters of which the two have not the same opinion, or
may come not to have, are tiktoken's; and after a fault all are.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable

from .vocabulary import Count

__all__ = ["KNOWN", "TRIED", "common", "toktok_count"]

logger = logging.getLogger(__name__)

Truncate = Callable[[str, int, str], "tuple[str, int]"]
"""The text cut to some tokens, and the tokens of the whole text."""

WHOLE = sys.maxsize
"""No text has as many tokens: nothing is cut."""

TRIED = (
    "Hello, world",
    "def f(x):\n    return [y for y in x if y != 'it\\'s']  # don't\n\n",
    '{"id": 1234567,\r\n\t"path": "/srv/app/HTTPServer.py", "ok": true}  ',
    "naïve Ünïcode, Привет мир! 你好，世界。これはテストです 한국어",
    "<|endoftext|> 🙂👍 ✓ → ──┐",
    "WE'LL I'd we've   \n \n\t\tx   ",
)
KNOWN = {"o200k_base": [3, 24, 25, 22, 16, 10], "cl100k_base": [3, 25, 25, 31, 18, 12]}
"""Their tokens as tiktoken counts them."""

# Characters that Unicode has had for ten years: the two libraries carry its tables of different
# years, and take a letter that one of them does not know yet for a sign. Missing among them is the
# long s, which tiktoken takes for the `s` of a contraction; lone surrogates, which toktok refuses;
# and scripts with gaps between their characters.
_COMMON = re.compile(
    "["
    "\x00-\u017e\u0180-\u024f"  # Latin
    "\u0391-\u03a1\u03a3-\u052f"  # Greek, Cyrillic
    "\u05d0-\u05ea\u0620-\u06ff\u0900-\u097f"  # Hebrew, Arabic, Devanagari
    "\u0e01-\u0e3a\u0e3f-\u0e5b"  # Thai
    "\u1e00-\u1eff"  # Vietnamese
    "\u2000-\u2064\u20a0-\u20bf\u2100-\u218b\u2190-\u23ff\u2500-\u2aff"  # marks, arrows, boxes
    "\u3000-\u303f\u3041-\u3096\u3099-\u30ff"  # Japanese
    "\u3400-\u4db5\u4e00-\u9fa5\uac00-\ud7a3"  # Chinese, Korean
    "\ufe0f\uff01-\uff9f\ufffd"
    "\U0001f300-\U0001f64f\U0001f680-\U0001f6c5\U0001f910-\U0001f93a"  # emoji
    "]*"
)


def common(text: str) -> bool:
    """Whether the text has only characters of which both libraries are known to think alike."""
    return text.isascii() or _COMMON.fullmatch(text) is not None


def toktok_count(name: str, reference: Count) -> Count | None:
    """Counts by the vocabulary of this name, and by `reference` what toktok may count otherwise.

    None where toktok is not installed, and where it is not to be believed.
    """
    try:
        from toktok import truncate

        found = [truncate(text, WHOLE, name)[1] for text in TRIED]
    except BaseException as error:
        if not _is_fault(error):
            raise
        if not (isinstance(error, ModuleNotFoundError) and error.name == "toktok"):
            logger.warning("toktok does not work, tiktoken counts: %r", error)
        return None
    if found != KNOWN[name]:
        logger.warning("toktok counts %s, not %s: tiktoken counts", found, KNOWN[name])
        return None
    return _Counting(truncate, name, reference)


class _Counting:
    """toktok as long as nothing is wrong with it, and the reference."""

    def __init__(self, truncate: Truncate, name: str, reference: Count) -> None:
        self._truncate = truncate
        self._name = name
        self._reference = reference
        self._sound = True

    def __call__(self, text: str) -> int:
        if self._sound and common(text):
            try:
                # Its function for many texts costs a single one fifteen times as much as tiktoken.
                return self._truncate(text, WHOLE, self._name)[1]
            except BaseException as error:
                if not _is_fault(error):
                    raise
                self._sound = False
                logger.warning("toktok failed, tiktoken counts from now on: %r", error)
        return self._reference(text)


def _is_fault(error: BaseException) -> bool:
    """A panic of Rust is no Exception; an interrupt of the user is no fault."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
