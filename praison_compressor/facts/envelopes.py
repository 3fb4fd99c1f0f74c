"""What a command printed, out of the JSON or the tags in which some tools hand it over.

One line of JSON hides every line of the output in it, and glues `\\n` to the word behind it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["opened"]

_SAID = ("stdout", "output", "stderr", "error")
_CODES = ("exit_code", "exitCode", "returncode", "return_code", "code", "status")
_BESIDE = frozenset(
    "command cwd duration duration_ms duration_seconds interrupted isImage metadata ok pid signal "
    "success timed_out truncated".split()
)
_TAGGED = re.compile(
    r"\s*<returncode>(-?\d+)</returncode>\s*<output>(.*?)(?:</output>\s*)?\Z", re.S
)
_KNOWN = _BESIDE.union(_SAID, _CODES)


def opened(result: str) -> str:
    """The output, and a last line with its exit code where it was told; else the result itself.

    Only where no other key says anything: a tool's own JSON is its answer.

    >>> opened('{"output": "a\\\\nb\\\\n", "metadata": {"exit_code": 2}}')
    'a\\nb\\nexit code 2'
    """
    if found := _TAGGED.match(result):
        return f"{found[2].strip()}\nexit code {found[1]}".strip()
    if not (result.startswith("{") and result.endswith("}")):
        return result
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return result
    if not isinstance(value, dict) or not value.keys() <= _KNOWN:
        return result
    said = [value[key].strip("\n") for key in _SAID if isinstance(value.get(key), str)]
    if not said:
        return result
    beside = value.get("metadata")
    code = _code(value) or (_code(beside) if isinstance(beside, Mapping) else "")
    return "\n".join(text for text in (*said, code) if text)


def _code(value: Mapping[str, Any]) -> str:
    found = (value.get(key) for key in _CODES)
    return next((f"exit code {code}" for code in found if type(code) is int), "")
