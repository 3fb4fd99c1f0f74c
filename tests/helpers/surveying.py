"""A model and its tool: each turn needs one reading of the turn before."""

import hashlib
import re

from praison_compressor.recall.answers import SEARCH
from praison_compressor.testing import Asked, Call, Reply
from tests.helpers.hosting import WORDS

TURNS, CALLS = 10, 8


def detail(number: int, nth: int) -> str:
    """Return a value that nobody can guess."""
    return hashlib.sha256(f"{number}/{nth}".encode()).hexdigest()[:12]


def measure(place: str, number: int, nth: int) -> str:
    """Measure a place.

    Args:
        place: what to measure
        number: of the turn
        nth: of the call
    """
    return f"{WORDS * 6} The gauge G-{number}-{nth} reads {detail(number, nth)}. {WORDS * 6}"


class Surveyor:
    """A model that makes eight calls in a turn, and needs one reading of the turn before."""

    def __init__(self, at_once: int = 1) -> None:
        self.at_once = at_once
        """Calls in a round."""
        self.found: list[str] = []

    def __call__(self, asked: Asked) -> Reply:
        number = max(map(int, re.findall(r"Turn (\d+): measure", asked.text)))
        done = self._done(asked, number)
        if number and not done and len(self.found) < number:
            wanted = f"G-{number - 1}-{number % CALLS}"
            seen = re.search(rf"{wanted} reads (\w+)", asked.text)
            last, names = asked.messages[-1], [t["function"]["name"] for t in asked.tools]
            if seen is None and SEARCH in names and last["role"] != "tool":
                return Reply(calls=(Call(SEARCH, {"query": wanted}),))
            self.found.append(seen[1] if seen else "not found")
        coming = range(done, min(done + self.at_once, CALLS))
        given = [{"place": f"p{n}", "number": number, "nth": n} for n in coming]
        calls = [Call("measure", each, id=f"call_{number}_{each['nth']}") for each in given]
        return (
            Reply(calls=tuple(calls)) if calls else Reply(f"Measured {number}. " + "Noted. " * 10)
        )

    def _done(self, asked: Asked, number: int) -> int:
        ids = re.findall(rf"call_{number}_(\d+)", str(asked.messages))
        return max(map(int, ids), default=-1) + 1
