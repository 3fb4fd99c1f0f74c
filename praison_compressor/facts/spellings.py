"""One name for each file: an editor is told `/repo/src/app.py`, the shell `src/app.py`."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Spellings"]


class Spellings:
    """The names under which files are known, each as it was first written."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._ending: dict[str, list[str]] = {}
        for path in known:
            self.of(path)

    def of(self, path: str) -> str:
        """The name under which the file is known; the path itself where it is new.

        Two paths mean one file where one ends with the whole of the other, of two parts at least,
        and no third one could be meant as well.
        """
        path = path.removeprefix("./")
        known = self._ending.setdefault("/".join(path.split("/")[-2:]), [])
        if path in known:
            return path
        alike = [other for other in known if _is_end_of(other, path) or _is_end_of(path, other)]
        if len(alike) == 1:
            return alike[0]
        known.append(path)
        return path


def _is_end_of(short: str, long: str) -> bool:
    return "/" in short and not short.startswith(("/", "~", "..")) and long.endswith("/" + short)
