"""Shorten a text: on one line, or by its beginning and end, pasted blocks first."""

from __future__ import annotations

import re

_STOPS = ("\n", ". ", "! ", "? ", "。", "！", "？", "; ", ", ", " ")
BLOCK_LINES = 8
"""Lines from which on a pasted block gives its middle before the words around it are cut."""
KEPT_LINES = (100, 40, 20, 10, 5)
"""Lines that each end of a block keeps where they fit, else fewer."""
MACHINE_LINE = re.compile(
    r"\s*(?:\[?\d{1,4}[-/:.]\d\d[-/:.]|\[?\d+\]?[:|\s]\s*\S|[<>{}\[\]|+$#@/\\*=~`]|\w+\(|-{2,}|"
    r"(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE|FATAL)\b|at \S+\(|File \"|\w[\w.-]*: |"
    r"\S*[^\w\s.,!?]\S*$|\"|- (?:\w+ )?(?:\"|\[|\w+:)|(?:\S+\s{2,})+\S)"
)
"""The form of a line of a log, of code, of data or of a page."""


def cut(text: str, most: int) -> str:
    """Return a text on one line, its middle left out beyond `most` characters."""
    near = text if len(text) <= 8 * most else f"{text[: 4 * most]} {text[-4 * most :]}"
    flat = " ".join(near.split())
    if len(flat) <= most:
        return flat
    tail = most // 4
    head, tail_text = flat[: most - tail - 3], flat[-tail:]
    if " " in head[len(head) // 2 :]:
        head = head.rpartition(" ")[0]
    if " " in tail_text[: tail // 2]:
        tail_text = tail_text.partition(" ")[2]
    return f"{head.rstrip()} … {tail_text.lstrip()}"


def ends(text: str, most: int) -> str:
    """Return a text's beginning and end within `most` characters, and how much is left out.

    Blocks of code, logs and files are thinned first. Both ends break at a line or a sentence. A gap
    shorter than twice its mark is none: the text is whole.
    """
    if len(text) <= most:
        return text
    thin = text
    for keep in (*KEPT_LINES, 2) if text.count("\n") > BLOCK_LINES else ():
        thin = thinned(text, keep)
        if len(thin) <= most:
            return thin
    first = most * 3 // 5
    head, tail = thin[:first], thin[-(most - first) :]
    head = head[: next((a + len(s) for s in _STOPS if (a := head.rfind(s)) >= first // 2), first)]
    near = len(tail) // 2
    tail = tail[next((a + len(s) for s in _STOPS if 0 <= (a := tail.find(s)) < near), 0) :]
    left = len(text) - len(head) - len(tail)
    mark = f" [… {left:,} of {len(text):,} characters …] "
    return text if left < 2 * len(mark) else f"{head.rstrip()}{mark}{tail.lstrip()}"


def thinned(text: str, keep: int = 2) -> str:
    r"""Return a text whose pasted blocks keep that many of their first and last lines.

    >>> thinned("Why?\\n" + "{'a': 1}\\n" * 20 + "Please mend it.").splitlines()[3]
    '[… 16 lines …]'
    """
    out: list[str] = []
    block: list[str] = []
    for line in (*text.split("\n"), None):
        if line is not None and (not line.strip() or MACHINE_LINE.match(line)):
            block.append(line)
            continue
        if len(block) >= max(BLOCK_LINES, 2 * keep + 2):
            block[keep:-keep] = [f"[… {len(block) - 2 * keep} lines …]"]
        out += block if line is None else [*block, line]
        block = []
    return "\n".join(out)
