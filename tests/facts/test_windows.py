"""The part of a clause that is printed with a name: whole words, its neighbours, in order."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.facts.details import ELLIPSIS, Windows


def cut(text: str, *names: str) -> str:
    """The window round these names."""
    return Windows(text).cut_out(
        [(text.index(name), text.index(name) + len(name)) for name in names]
    )


def test_a_name_keeps_the_words_beside_it_and_two_that_say_what_it_is() -> None:
    """Stale words tell nothing; the rest of the line is left out."""
    text = "zero one two; the parser of order_file fails when the server restarts, three four five"
    assert cut(text, "order_file") == "parser of order_file fails"
    assert cut("x y z order_file u v w", "order_file") == "z order_file u"
    assert cut("yy authentication of x order_file u v w", "order_file") == (
        "authentication of x order_file u"
    )


def test_windows_that_nearly_touch_are_one() -> None:
    """Others are told apart by an ellipsis, in the order of the text."""
    near = "parser order_file breaks user_name badly"
    assert cut(near, "user_name", "order_file") == near
    far = "parser order_file breaks, " + "and so it went on and on " * 4 + "badly user_name ended"
    told = cut(far, "user_name", "order_file")
    assert told.startswith("parser order_file breaks")
    assert told.endswith("user_name ended")
    assert " … " in told


def pieces(chance_words: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    """A few of these words."""
    return st.lists(chance_words, max_size=8)


BARE = st.from_regex(r"[a-zA-Z0-9_]{1,10}", fullmatch=True)
MARKED = st.from_regex(r"[(\[\-=.:;]{0,5}[a-zA-Z0-9]{1,6}[)\].,:;]{0,4}", fullmatch=True)
ONLY_MARKS = st.from_regex(r"[-=+|*]{1,4}", fullmatch=True)


@given(pieces(MARKED | ONLY_MARKS), pieces(MARKED | ONLY_MARKS))
def test_a_window_is_made_of_whole_words(before: list[str], after: list[str]) -> None:
    """With all the marks that touch them, as long as a word with its marks is short."""
    text = " ".join([*before, "order_file", *after])
    assert f" {cut(text, 'order_file')} " in f" {text} "


@given(pieces(BARE), pieces(BARE))
def test_a_window_has_the_neighbours_of_the_name(before: list[str], after: list[str]) -> None:
    """The word on either side, whatever it is: a number, one letter, a name with underscores."""
    text = " - ".join([*before, "order_file", *after])
    beside = " - ".join([*before[-1:], "order_file", *after[:1]])
    assert beside in cut(text, "order_file")


@given(st.lists(st.sampled_from(["parser", "breaks", "of", "x1", "-", "order_file", "the"])))
def test_a_window_is_never_wider_than_its_text_and_the_same_twice(words: list[str]) -> None:
    """Every name of a text at once: the parts stand in order, each verbatim."""
    text = " ".join(["order_file", *words])
    windows = Windows(text)
    spans = [found.span() for found in re.finditer("order_file", text)]
    told = windows.cut_out(spans)
    at = 0
    for part in told.split(ELLIPSIS):
        at = text.index(part, at) + len(part)
    assert windows.cut_out(list(reversed(spans))) == told
    assert told.count("order_file") == len(spans)
