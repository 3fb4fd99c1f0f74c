"""Refusals in servers' own words, by public reports, read from tables beside this module.

`wordings.tsv` has what is too long, `others.tsv` what a smaller request does not mend: server,
status, code, words; "-" for nothing. In the words, `{asked}` is the prompt's tokens, `{window}`
the server's window, `{over}` the excess, `{chars}` the prompt's characters, `{total}` the prompt
with an answer of `{answer}` tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import httpx
import openai


class Wording(NamedTuple):
    """One server's refusal."""

    server: str
    status: int
    code: str | None
    words: str

    @property
    def names_window(self) -> bool:
        """Whether the refusal names the window, or the excess over it."""
        return any(name in self.words for name in ("{window}", "{window:", "{over}"))

    def said(self, *, asked: int, window: int, chars: int, answer: int = 512) -> str:
        """Return the words for one request."""
        numbers = {"over": asked - window, "total": asked + answer, "answer": answer}
        return self.words.format(asked=asked, window=window, chars=chars, **numbers)

    def error(self, words: str) -> openai.APIStatusError:
        """Return what OpenAI's client raises for this refusal."""
        body = {"message": words, "type": "invalid_request_error", "code": self.code}
        url = httpx.Request("POST", "http://127.0.0.1/v1")
        response = httpx.Response(self.status, json={"error": body}, request=url)
        return openai.OpenAI(api_key="any")._make_status_error_from_response(response)


def _table(name: str) -> tuple[Wording, ...]:
    lines = (Path(__file__).with_name(name)).read_text(encoding="utf-8").splitlines()
    rows = (["" if cell == "-" else cell for cell in line.split("\t")] for line in lines)
    return tuple(
        Wording(server, int(status), code or None, said) for server, status, code, said in rows
    )


TOO_LONG = _table("wordings.tsv")
OTHERS = _table("others.tsv")
