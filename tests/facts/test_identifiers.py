"""What is an identifier and what it is worth; where clauses are cut; which are chosen."""

from __future__ import annotations

import pytest

from praison_compressor import TokenCounter
from praison_compressor.facts.details import joined, windows
from praison_compressor.facts.identifiers import (
    CLAUSE_CHARS,
    Classifier,
    clauses,
)
from praison_compressor.facts.passages import Passage
from praison_compressor.messages import Message
from praison_compressor.summaries.static import static_summary
from tests.helpers.transcripts import step

UUID = "550e8400-e29b-41d4-a716-446655440000"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("open src/app/main_view.py now", {"app/main_view.py": "path", "main_view.py": "file"}),
        (
            "see /srv/shop/api/orders.py:",
            {"api/orders.py": "path", "orders.py": "file", "shop/api": "folder"},
        ),
        ("in src/app/main.py", {"app/main.py": "path"}),
        ("in ../my_part", {"../my_part": "path", "my_part": "symbol"}),
        ("#a_b #1234", {"1234": "number"}),
        ("at obj.deadbeef42", {"obj.deadbeef42": "dotted", "deadbeef42": "hash"}),
        ("call shop.handleOrder now", {"shop.handleOrder": "dotted", "handleOrder": "symbol"}),
        ("os.path is plain", {"os.path": "dotted"}),
        ("fix #48213 and #12", {"48213": "number"}),
        ("of " + UUID, {UUID: "uuid"}),
        ("on 2026-11-22, in 2026", {"2026-11-22": "date"}),
        ("about 1.2.3 and 12px of 12/31", {"1.2.3": "number"}),
        ("BILL-48213 by me@example.com", {"BILL-48213": "id", "me@example.com": "email"}),
        ("in app.py, an ordinary long-word of src/app", {"app.py": "file"}),
        (
            "文件config/部署.yaml，端口改为9090，调用get_user。",
            {"9090": "number", "get_user": "symbol"},
        ),
        ("abc a_b README.md package.json", {}),
        ("./a_b/", {"./a_b": "path"}),
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


def test_a_long_line_is_cut_where_a_sentence_ends() -> None:
    """At the last end before the length, at a space where there is none, else anywhere."""
    first, second = "a" * 150 + ".", "b" * 150 + "."
    assert list(clauses(Passage(0, "user", f"{first} {second}"))) == [first, second]
    words = " ".join(["wordly"] * 80)
    cut_words = list(clauses(Passage(0, "user", words)))
    assert " ".join(cut_words) == words
    assert all(len(piece) <= CLAUSE_CHARS for piece in cut_words)
    objects = ['{"key":"' + "x" * 90 + '"},'] * 6
    assert list(clauses(Passage(0, "user", "".join(objects)))) == ["".join(objects[:2])] * 3
    assert [len(piece) for piece in clauses(Passage(0, "user", "x" * 600))] == [240, 240, 120]
    assert next(clauses(Passage(0, "user", "intro\n" + "x" * 600))) == "intro"


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


def _session(asked: str, then: str) -> list[Message]:
    """A listing of a hundred functions, and a call that shows what they are wanted for."""
    return [
        {"role": "user", "content": asked},
        *step("c1", LISTING, path="internal/all_of_it.go"),
        *step("c2", "no matches", "search", pattern=then),
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
    assert _kept(summary, word) >= 7 > 2 * max(others)


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


FAR = "and so on " * 7


def test_a_name_keeps_its_line_or_the_words_beside_it_and_two_that_say_what_it_is() -> None:
    """Stale words tell nothing; the rest of a long line is left out, a short one stays whole."""
    text = f"{FAR}the parser of order_file fails {FAR}"
    assert cut(text, "order_file") == "parser of order_file fails"
    assert cut(f"{FAR}z order_file u {FAR}", "order_file") == "z order_file u"
    assert cut(f"{FAR}yy authentication of x order_file u {FAR}", "order_file") == (
        "authentication of x order_file u"
    )
    assert cut("it = None\nif order_file == fresh:\n    x()", "order_file") == (
        "if order_file == fresh:"
    )
