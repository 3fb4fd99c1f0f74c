"""What is an identifier and what it is worth; where clauses are cut; on examples by hand."""

from __future__ import annotations

import pytest

from praison_compressor.facts import extract
from praison_compressor.facts.coverage import short
from praison_compressor.facts.details import Chooser
from praison_compressor.facts.identifiers import (
    CLAUSE_CHARS,
    Classifier,
    clauses,
    excerpts_of,
    key_of,
    kind_of,
)
from praison_compressor.facts.model import Excerpt
from praison_compressor.facts.passages import Passage

# ---------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("https://example.com/a?b=1", "url"),
        ("http://a", "url"),
        ("httpx", None),
        ("/etc/hosts", "path"),
        ("./run", "path"),
        ("~/notes", "path"),
        ("src/app/main", "path"),
        ("src/app", None),
        ("src/app.py", "path"),
        ("src/app_2", "path"),
        ("src/app-two", "path"),
        ("src/app2", "path"),
        ("src/Xyz", None),
        ("12/31", None),
        ("1/2/3", None),
        ("550e8400-e29b-41d4-a716-446655440000", "uuid"),
        ("2026-11-22", "date"),
        ("2026-11-22T02:30:05Z", "date"),
        ("2026-1-22", None),
        ("123", None),
        ("1234", "number"),
        ("1999", None),
        ("2026", None),
        ("2126", "number"),
        ("3.14", "number"),
        ("3.1", None),
        ("1.2.3", "number"),
        ("12345.6", "number"),
        ("deadbeef42", "hash"),
        ("deadbeef", None),
        ("1234567", "number"),
        ("a1b2c3", "id"),
        ("a1b2c3d", "hash"),
        ("A1B2C3D4", "id"),
        ("X17", "id"),
        ("X7", None),
        ("v12", None),
        ("12px", None),
        ("100MB", None),
        ("250ms", None),
        ("15th", None),
        ("BILL-48213", "id"),
        ("utf8.1", None),
        ("user_1x", "symbol"),
        ("me@example.com", "email"),
        ("me@localhost", None),
        ("main2@example.com", "email"),
        ("app.py", "file"),
        ("app.PY", "file"),
        ("app.unknown", "dotted"),
        ("os.path", "dotted"),
        ("os..path", None),
        ("handleRequest", "symbol"),
        ("HttpServer", "symbol"),
        ("HTTPserver", "symbol"),
        ("handle_request", "symbol"),
        ("_private_name", "symbol"),
        ("__init", None),
        ("UPPER", None),
        ("MAX_SIZE", "symbol"),
        ("ordinary", None),
        ("Ordinary", None),
        ("long-word", None),
        ("no#hash", None),
        ("____", None),
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


def test_paths_are_known_by_their_last_two_parts() -> None:
    """However deep they were written, and short ones as they are."""
    assert key_of("/srv/shop/api/orders.py", "path") == "api/orders.py"
    assert key_of("~/a/../b/c", "path") == "b/c"
    assert key_of("api/orders.py", "path") == "api/orders.py"
    assert key_of("/api/orders.py", "path") == "/api/orders.py"
    assert key_of("a/b/c", "url") == "a/b/c"
    assert short("/srv/shop/api/orders.py") == "api/orders.py"
    assert short("./a/b") == "./a/b"
    assert short("a.py") == "a.py"


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


def test_line_numbers_of_a_printed_file_are_left_out_and_a_lead_is_put_in_front() -> None:
    """In results only: elsewhere a number may be meant."""
    text = "  12→def run_it\n13: x\n14|y"
    assert list(clauses(Passage(0, "result", text))) == ["def run_it x 14|y"]
    assert list(clauses(Passage(0, "user", "12: x"))) == ["12: x"]
    led = Passage(0, "call", "bash ls", None, "Now I look.")
    assert list(clauses(led)) == ["Now I look. bash ls"]


def test_an_excerpt_is_a_clause_with_the_names_it_binds() -> None:
    """Clauses without a name bind nothing."""
    passage = Passage(7, "user", "Mend order_file.\n" + "plain words " * 30)
    ((excerpt, names),) = excerpts_of(passage, Classifier())
    assert (excerpt.index, excerpt.source, excerpt.keys) == (7, "user", ("order_file",))
    assert excerpt.text.startswith("Mend order_file.")
    assert names == {"order_file": "symbol"}


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


def test_a_further_name_of_a_clause_is_printed_where_it_is_worth_a_third() -> None:
    """Of what the best one is worth for its length; the others are left out of the window."""
    text = "alpha_name " + "filling words without any names " * 8 + "omega_name"
    excerpt = Excerpt(0, "user", text, ("alpha_name", "omega_name"))
    for weight, printed in ((0.36, {"alpha_name", "omega_name"}), (0.34, {"alpha_name"})):
        chooser = Chooser([excerpt], {"alpha_name": 1.0, "omega_name": weight}, count)
        chooser.spend(8 if len(printed) == 1 else 30)
        assert set(chooser.chosen()[0].keys) == printed
