"""OpenAI's vocabularies counted by toktok, where it is installed: as tiktoken does, but sooner.

It is a young package, so tiktoken stays the reference. toktok is tried on texts of known counts
before it is believed; texts that hold characters of which the two have not the same opinion, or
may come not to have, are tiktoken's; and after a fault all are.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from itertools import compress
from typing import Any

from .vocabulary import Count

__all__ = ["KNOWN", "TRIED", "Toktok", "common", "toktok_of"]

logger = logging.getLogger(__name__)

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


def toktok_of(name: str, reference: Count) -> Toktok | None:
    """Counts by the vocabulary of this name, and by `reference` what toktok may count otherwise.

    None where toktok is not installed, and where it is not to be believed.
    """
    try:
        import toktok

        found = Toktok(toktok, name, reference)
        counts = [found.one(text) for text in TRIED], found.many(TRIED)
    except BaseException as error:
        if not _is_fault(error):
            raise
        if not (isinstance(error, ModuleNotFoundError) and error.name == "toktok"):
            logger.warning("toktok does not work, tiktoken counts: %r", error)
        return None
    if counts != (KNOWN[name], KNOWN[name]):
        logger.warning("toktok counts %s, not %s: tiktoken counts", counts, KNOWN[name])
        return None
    return found


class Toktok:
    """One vocabulary of toktok's as long as nothing is wrong with it, and the reference."""

    def __init__(self, library: Any, name: str, reference: Count) -> None:
        self._library = library
        self._name = name
        self._reference = reference
        self._sound = True

    def __call__(self, text: str) -> int:
        """Tokens of a text."""
        if self._sound and common(text):
            try:
                return self.one(text)
            except BaseException as error:
                self._failed(error)
        return self._reference(text)

    def all(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each of many texts."""
        if not self._sound:
            return list(map(self._reference, texts))
        known = list(map(common, texts))
        try:
            counts = iter(self.many(list(compress(texts, known))))
        except BaseException as error:
            self._failed(error)
            return list(map(self._reference, texts))
        return [
            next(counts) if ours else self._reference(text)
            for text, ours in zip(texts, known, strict=True)
        ]

    def one(self, text: str) -> int:
        """As toktok itself counts."""
        # What it offers for many texts takes fifteen times as long as tiktoken for a short one.
        _, tokens = self._library.truncate(text, WHOLE, self._name)
        return int(tokens)

    def many(self, texts: Sequence[str]) -> list[int]:
        """The same of many texts."""
        return list(self._library.batch_count(texts, self._name, threads=1))

    def _failed(self, error: BaseException) -> None:
        """Have tiktoken count from now on.

        Raises:
            BaseException: the error itself, where it is none of toktok's.
        """
        if not _is_fault(error):
            raise error
        self._sound = False
        logger.warning("toktok failed, tiktoken counts from now on: %r", error)


def _is_fault(error: BaseException) -> bool:
    """A panic of Rust is no Exception; an interrupt of the user is no fault."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
