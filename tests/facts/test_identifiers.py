"""What is an identifier and what it is worth; where clauses are cut; which are chosen."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor import TokenCounter
from praison_compressor.facts.details import Chooser, joined, windows
from praison_compressor.facts.identifiers import (
    CLAUSE_CHARS,
    Classifier,
    clauses,
    kind_of,
)
from praison_compressor.facts.model import Excerpt
from praison_compressor.facts.passages import Passage
from praison_compressor.messages import Message
from praison_compressor.summaries.static import static_summary


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("https://example.com/a?b=1", "url"),
        ("/etc/hosts", "path"),
        ("src/app/main", "path"),
        ("src/app", None),
        ("src/app.py", "path"),
        ("12/31", None),
        ("550e8400-e29b-41d4-a716-446655440000", "uuid"),
        ("2026-11-22", "date"),
        ("2026-11-22T02:30:05Z", "date"),
        ("1234", "number"),
        ("2026", None),
        ("3.14", "number"),
        ("1.2.3", "number"),
        ("deadbeef42", "hash"),
        ("a1b2c3d", "hash"),
        ("12px", None),
        ("BILL-48213", "id"),
        ("me@example.com", "email"),
        ("main2@example.com", "email"),
        ("app.py", "file"),
        ("app.unknown", "dotted"),
        ("os.path", "dotted"),
        ("handleRequest", "symbol"),
        ("handle_request", "symbol"),
        ("MAX_SIZE", "symbol"),
        ("ordinary", None),
        ("long-word", None),
    ],
)
def test_the_kind_of_a_token(token: str, kind: str | None) -> None:
    """What nobody could guess is an identifier; a word, a year or a measure is not."""
    assert kind_of(token) == kind


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("open src/app/main_view.py now", {"app/main_view.py": "path", "main_view.py": "file"}),
        (
            "see /srv/shop/api/orders.py:",
            {"api/orders.py": "path", "orders.py": "file", "shop/api": "folder"},
        ),
        ("in src/app/main.py", {"app/main.py": "path"}),
        (
            "in ~/work/my_part/",
            {
                "~/work/my_part": "path",
                "my_part": "symbol",
                "~/work": "folder",
            },
        ),
        ("in ../my_part", {"../my_part": "path", "my_part": "symbol"}),
        ("in app/my_part", {"app/my_part": "path", "my_part": "symbol"}),
        ("in a/b/c/my_part", {"c/my_part": "path", "my_part": "symbol", "b/c": "folder"}),
        ("in /a/b/a_bc", {"b/a_bc": "path", "a_bc": "symbol", "/a/b": "folder"}),
        ("#a_b #1234", {"1234": "number"}),
        ("see a_bc and X_order_idX", {"a_bc": "symbol", "X_order_idX": "symbol"}),
        ("at obj.a_bc", {"obj.a_bc": "dotted", "a_bc": "symbol"}),
        ("at obj.a1b2c3", {"obj.a1b2c3": "dotted", "a1b2c3": "id"}),
        ("at obj.deadbeef42", {"obj.deadbeef42": "dotted", "deadbeef42": "hash"}),
        ("at x.user_id", {"x.user_id": "dotted", "user_id": "symbol"}),
        ("call shop.handleOrder now", {"shop.handleOrder": "dotted", "handleOrder": "symbol"}),
        ("os.path is plain", {"os.path": "dotted"}),
        ("fix #48213 and #12", {"48213": "number"}),
        ("see #fix_me", {"fix_me": "symbol"}),
        ("done (handle_request).", {"handle_request": "symbol"}),
        ("abc a_b README.md package.json", {}),
        ("./a_b/", {"./a_b": "path"}),
        ("-handle_it-", {"handle_it": "symbol"}),
        ("x" * 150 + "_" + "y" * 49, {"x" * 150 + "_" + "y" * 49: "symbol"}),
        ("x" * 150 + "_" + "y" * 50, {}),
        ("https://example.com/x?y=1).", {"https://example.com/x?y=1": "url"}),
    ],
)
def test_the_identifiers_of_a_text(text: str, names: dict[str, str]) -> None:
    """With the parts of a path that stand for themselves; edges and common names left out."""
    classifier = Classifier()
    assert classifier.names(text) == names
    assert classifier.names(text) == names
    keys = classifier.keys(text)
    assert {key: kind for key, kind, _, _ in keys} == names
    assert all(key.split("/")[-1] in text[start:end] for key, _, start, end in keys)


# ---------------------------------------------------------------- worth


# ---------------------------------------------------------------- clauses


def test_a_long_line_is_cut_where_a_sentence_ends() -> None:
    """At the last end before the length, at a space where there is none, else anywhere."""
    first, second = "a" * 150 + ".", "b" * 150 + "."
    assert list(clauses(Passage(0, "user", f"{first} {second}"))) == [first, second]
    words = " ".join(["word"] * 100)
    pieces = list(clauses(Passage(0, "user", words)))
    assert " ".join(pieces) == words
    assert all(len(piece) <= CLAUSE_CHARS for piece in pieces)
    assert len(pieces) == 3
    odd = " ".join(["wordly"] * 80)
    assert " ".join(clauses(Passage(0, "user", odd))) == odd
    objects = ['{"key":"' + "x" * 90 + '"},'] * 6
    assert list(clauses(Passage(0, "user", "".join(objects)))) == ["".join(objects[:2])] * 3
    mixed = "a" * 90 + ". " + "word " * 60
    assert next(clauses(Passage(0, "user", mixed))) == "a" * 90 + "."
    solid = "x" * 600
    assert [len(piece) for piece in clauses(Passage(0, "user", solid))] == [240, 240, 120]
    assert [len(piece) for piece in clauses(Passage(0, "user", "x" * 480))] == [240, 240]
    early = "a" * 20 + ". " + "b" * 230
    assert next(clauses(Passage(0, "user", early))).startswith("a" * 20)
    exact = "y" * CLAUSE_CHARS
    assert list(clauses(Passage(0, "user", exact))) == [exact]
    assert next(clauses(Passage(0, "user", f"intro\n{solid}"))) == "intro"


# ---------------------------------------------------------------- roots


# ---------------------------------------------------------------- selection


def count(text: str) -> int:
    """A token for each word."""
    return len(text.split())


def test_the_clause_that_is_worth_most_a_token_is_chosen_first() -> None:
    """Until the room is spent; what was chosen last is given back first."""
    excerpts = [
        Excerpt(0, "user", "cheap talk about low_name here", ("low_name",)),
        Excerpt(1, "user", "the costly talk about high_name there", ("high_name",)),
    ]

    def chooser(room: float) -> Chooser:
        weights = {"low_name": 0.1, "high_name": 0.9}
        made = Chooser(excerpts, weights, count, Classifier())
        made.spend(room)
        return made

    assert [item.index for item in chooser(9).chosen()] == [1]
    both = chooser(18)
    assert [item.index for item in both.chosen()] == [0, 1]
    both.give_back(1)
    assert [item.index for item in both.chosen()] == [1]
    both.give_back(100)
    assert both.chosen() == []


COUNT = TokenCounter("gpt-4o").text
SUBJECTS = "Invoice Ledger Tariff Parcel Voucher Margin Pallet Coupon Carrier Refund".split()
DEEDS = "load parse render merge split index purge clone rank fold".split()
FILLER = (
    "// Walks over everything that was handed in and leaves aside whatever came too late for the "
    "yearly closing of the books, which another department answers for since last spring."
)
LISTING = "\n".join(
    f"{FILLER}\nfunc {deed}{subject}(rows Rows) error" for deed in DEEDS for subject in SUBJECTS
)


def _made(name: str, at: int, **arguments: str) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"c{at}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _session(asked: str, then: str) -> list[Message]:
    """A listing of a hundred functions, and a call that shows what they are wanted for."""
    return [
        {"role": "user", "content": asked},
        _made("read_file", 1, path="internal/all_of_it.go"),
        {"role": "tool", "tool_call_id": "c1", "content": LISTING},
        _made("search", 2, pattern=then),
        {"role": "tool", "tool_call_id": "c2", "content": "no matches"},
    ]


def _kept(summary: str, word: str) -> int:
    return sum(f"{deed}{word}" in summary for deed in DEEDS)


@pytest.mark.parametrize("word", ["Tariff", "Coupon", "Refund"])
def test_names_akin_to_those_in_the_newest_calls_come_first(word: str) -> None:
    """The functions about tariffs stay, once a call was about `tariff_rules`."""
    summary = static_summary(
        _session("Go on.", f"{word.lower()}_rules"), budget_tokens=120, count=COUNT
    )
    others = [_kept(summary, other) for other in SUBJECTS if other != word]
    assert _kept(summary, word) >= 8 > 2 * max(others)


def test_names_made_of_the_users_words_come_first() -> None:
    """Nobody called anything about vouchers; the user asked for them."""
    asked = "The voucher is counted twice."
    summary = static_summary(_session(asked, "x_y"), budget_tokens=120, count=COUNT)
    others = [_kept(summary, other) for other in SUBJECTS if other != "Voucher"]
    assert _kept(summary, "Voucher") >= 8 > 2 * max(others)


def cut(text: str, *names: str) -> str:
    """The window round these names."""
    spans = {name: (text.index(name), text.index(name) + len(name)) for name in names}
    return joined(text, windows(text, spans).values())


def test_a_name_keeps_the_words_beside_it_and_two_that_say_what_it_is() -> None:
    """Stale words tell nothing; the rest of the line is left out."""
    text = "zero one two; the parser of order_file fails when the server restarts, three four five"
    assert cut(text, "order_file") == "parser of order_file fails"
    assert cut("x y z order_file u v w", "order_file") == "z order_file u"
    assert cut("yy authentication of x order_file u v w", "order_file") == (
        "authentication of x order_file u"
    )


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
