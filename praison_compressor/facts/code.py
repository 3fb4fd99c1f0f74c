"""What a piece of Python does to files, read from its calls; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .programs import Effect

__all__ = ["of_code"]

_PATH = r"\(\s*[rf]?(?P<quote>['\"])(?P<path>[^'\"\n{}]{1,300})(?P=quote)"
_CALLS = re.compile(
    rf"\b(?P<name>open|read_\w+|to_(?:csv|parquet|json|excel|pickle|feather|html|markdown)|savefig|"
    rf"imwrite|imsave|remove|unlink|write_text|Path){_PATH}"
    r"(?:\)\.(?P<method>\w+)|\s*,\s*(?:mode\s*=\s*)?['\"](?P<mode>[rwaxbt+]{1,3})['\"])?"
)
_METHODS = {
    "write_text": "created",
    "write_bytes": "created",
    "unlink": "deleted",
    "read_text": "read",
    "read_bytes": "read",
}
_READS = re.compile(r"read_(?:csv|parquet|json|excel|table|pickle|feather|fwf|html)$")


def of_code(code: str, via: str) -> Iterator[Effect]:
    """The files that a script opens, writes or removes under a name it spells out."""
    for found in _CALLS.finditer(code):
        action = _action(found)
        if action and "://" not in found["path"]:
            yield Effect(found["path"], action, via)


def _action(found: re.Match[str]) -> str:
    name, mode = found["name"], found["mode"] or "r"
    if name == "Path":
        return _METHODS.get(found["method"] or "", "")
    if name == "open":
        return "created" if mode[0] in "wx" else "edited" if "a" in mode or "+" in mode else "read"
    if name in ("remove", "unlink"):
        return "deleted"
    if name.startswith("read_"):
        return "read" if _READS.match(name) else ""
    return "created"
