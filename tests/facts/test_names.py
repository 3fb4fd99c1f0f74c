"""What is an identifier and what it is worth; where clauses are cut; on examples by hand."""

from __future__ import annotations

import pytest

from praison_compressor.facts import extract
from praison_compressor.facts.details import Chooser
from praison_compressor.facts.identifiers import (
    CLAUSE_CHARS,
    Classifier,
    clauses,
    kind_of,
)
from praison_compressor.facts.model import Excerpt
from praison_compressor.facts.passages import Passage

# ---------------------------------------------------------------- kinds


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


def test_a_domains_own_patterns_name_too() -> None:
    """Beside the general kinds, with the place where each stands."""
    classifier = Classifier({"ticket": r"[A-Z]{2}\d\d"})
    assert classifier.names("AB12 and order_id") == {"order_id": "symbol", "AB12": "ticket"}
    assert ("AB12", "ticket", 4, 8) in classifier.keys("see AB12")


# ---------------------------------------------------------------- worth


def test_identifiers_are_counted_by_who_used_them() -> None:
    """Calls by name and in bodies, the user, the assistant, results and the host."""
    long = "body_only " + "word " * 60
    call = {"id": "c", "type": "function", "function": {"name": "save", "arguments": ""}}
    call["function"] = {
        "name": "save",
        "arguments": '{"path": "order_file", "text": "' + long + '"}',
    }
    facts = extract(
        [
            {"role": "system", "content": "Keep host_name in order_file."},
            {"role": "user", "content": "Mend order_file for user_name. And order_file again."},
            {"role": "assistant", "content": "I see order_file.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "order_file saved"},
        ]
    )
    found = {item.text: item for item in facts.identifiers}
    order = found["order_file"]
    assert (order.named, order.bodies, order.user, order.assistant) == (1, 0, 1, 1)
    assert (order.results, order.first, order.last, order.spread) == (2, 0, 3, 5)
    assert (order.kind, order.crowd) == ("symbol", 1)
    body = found["body_only"]
    assert (body.named, body.bodies, body.first, body.last) == (0, 1, 2, 2)
    assert found["user_name"].crowd == 2
    assert facts.messages == 4


# ---------------------------------------------------------------- clauses


def test_neighbouring_lines_stay_together_up_to_the_length_of_a_clause() -> None:
    """Whitespace is flattened, empty lines say nothing."""
    passage = Passage(0, "assistant", "one\n\n  two   three \nfour")
    assert list(clauses(passage)) == ["one two three four"]
    half = "a" * (CLAUSE_CHARS // 2)
    assert list(clauses(Passage(0, "user", f"{half}\n{half[1:]}"))) == [f"{half} {half[1:]}"]
    assert list(clauses(Passage(0, "user", f"{half}\n{half}"))) == [half, half]
    assert list(clauses(Passage(0, "user", " \n "))) == []


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


def test_line_numbers_of_a_printed_file_are_left_out() -> None:
    """In results only: elsewhere a number may be meant."""
    text = "  12→def run_it\n13: x\n14|y"
    assert list(clauses(Passage(0, "result", text))) == ["def run_it x 14|y"]
    assert list(clauses(Passage(0, "user", "12: x"))) == ["12: x"]


# ---------------------------------------------------------------- roots


# ---------------------------------------------------------------- selection


def count(text: str) -> int:
    """A token for each word."""
    return len(text.split())


def test_the_clause_that_is_worth_most_a_token_is_chosen_first() -> None:
    """Until the room is spent; what does not fit waits for the next time."""
    excerpts = [
        Excerpt(0, "user", "cheap talk about low_name here", ("low_name",)),
        Excerpt(1, "user", "the costly talk about high_name there", ("high_name",)),
    ]
    chooser = Chooser(excerpts, {"low_name": 0.1, "high_name": 0.9}, count)
    chooser.spend(9)
    assert [item.index for item in chooser.chosen()] == [1]
    chooser.spend(9)
    assert [item.index for item in chooser.chosen()] == [0, 1]
    chooser.give_back(1)
    assert [item.index for item in chooser.chosen()] == [1]
    chooser.give_back(100)
    assert chooser.chosen() == []


def test_what_is_bound_already_is_not_bound_again() -> None:
    """A covered name is worth nothing the second time, or as much as is said."""
    twice = [
        Excerpt(n, "user", f"{word} talk about same_name here", ("same_name",))
        for n, word in enumerate(("first", "second"))
    ]
    once = Chooser(twice, {"same_name": 0.5}, count)
    once.spend(100)
    assert len(once.chosen()) == 1
    again = Chooser(twice, {"same_name": 0.5}, count)
    again.spend(100, again=0.5)
    assert len(again.chosen()) == 2
    assert Chooser(twice, {}, count).chosen() == []
    worthless = Chooser(twice, {"same_name": 0.0}, count)
    worthless.spend(100)
    assert worthless.chosen() == []
