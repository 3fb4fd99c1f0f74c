"""The life of a session on one page: what was compressed when, what each summary kept, what it cost.

`life_of_session` and `life_of_transcript` collect, `render` writes one self-contained page.
"""

from .life import Card, Life, Point, life_of_session, life_of_transcript
from .page import render

__all__ = ["Card", "Life", "Point", "life_of_session", "life_of_transcript", "render"]
