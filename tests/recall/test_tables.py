"""JSON of like objects is laid out as a table, and shown so by a search."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.recall.layout import as_table, table_of
from tests.helpers.talks import count, holding
from tests.helpers.transcripts import step, user

VALUES = st.integers() | st.booleans() | st.text("abc ", min_size=1)


@given(st.lists(st.tuples(VALUES, VALUES)))
def test_a_table_has_every_value_once_a_row(values):
    """Three or more like objects give a row each, with the values in order."""
    rows = [{"id": first, "of": {"x": second}} for first, second in values]
    table = as_table(json.dumps({"found": rows, "pages": 1}))
    expected = [
        "; ".join(v if isinstance(v, str) else json.dumps(v) for v in pair) for pair in values
    ]
    assert table.split("\n")[2:] == (expected if len(rows) >= 3 else [])


def test_a_table_names_keys_once():
    """Keys stand above the rows, and a single object keeps its own."""
    cards = {f"card-{n}": {"source": "gift", "amount": n} for n in range(3)}
    table = as_table(json.dumps({"user": {"name": "Kim", "lines": [{"a": [1]}]}, "cards": cards}))
    assert "cards.*: source; amount\ncard-0: gift; 0\ncard-1: gift; 1\ncard-2: gift; 2" in table
    assert "user: name: Kim" in table


def test_what_a_table_would_not_shorten_stays():
    """Short texts, texts that are no JSON and JSON of unlike objects have no table."""
    rows = [{"number": n, "a long name of a column": n} for n in range(99)]
    assert table_of(json.dumps(rows))
    for text in (
        json.dumps(rows[:9]),
        f"Found: {rows}",
        json.dumps([{f"k{n}": n} for n in range(99)]),
    ):
        assert table_of(text) == ""


# ---------------------------------------------------------------- in a search


def test_a_search_for_all_of_a_list_shows_its_table():
    """A match at the top of JSON shows its table, and a match of one row is smaller."""
    made = {
        f"61{n}": {"item": f"61{n}", "size": {"head": n, "brim": 7}, "here": n % 2 == 0}
        for n in range(12)
    }
    said = [user("Go."), *step("a", json.dumps({"name": "Hat", "kinds": made}))]
    search, _ = holding(said)
    answer = search("Hat kinds here")
    assert "kinds.*: item; size.head; size.brim; here\n610; 0; 7; true" in answer
    assert "6111; 11; 7; false" in answer
    assert count(answer) <= 400
    assert count(search("6111")) <= 300


def test_a_cut_table_counts_the_rows_left_out():
    """Each gap of a table says its rows, so that a reader can count them all."""
    ships = [{"ship": f"HAT{n:03}", "crates": n, "sealed": True} for n in range(300)]
    search, _ = holding([user("Go."), *step("a", json.dumps({"ships": ships}))])
    answer = search("ships HAT150")
    shown = re.findall(r"^HAT\d{3}; \d+; true$", answer, re.M)
    gaps = re.findall(r"^… (\d+) rows left out$", answer, re.M)
    assert "HAT150; 150; true" in shown
    assert len(gaps) == 2
    assert len(shown) + sum(map(int, gaps)) == 300


def test_a_table_is_shown_once():
    """Two rows that match are shown in one table, not each in a table of its own."""
    ships = [{"ship": f"HAT{n:03}", "crates": n, "sealed": True} for n in range(300)]
    search, _ = holding([user("Go."), *step("a", json.dumps({"ships": ships}))])
    answer = search("HAT050 HAT250")
    assert answer.count("ships.*: ship; crates; sealed") == 1
    assert "HAT050; 50; true" in answer
    assert "HAT250; 250; true" in answer


def test_a_result_that_matches_itself_keeps_its_table():
    """A result quoted below its call, because both match, is not cut to a few lines."""
    boats = [{"boat": f"BOAT{n}", "harbour": "Lerwick", "berths": n, "fare": n} for n in range(12)]
    text = json.dumps({"id": "OBUT9V", "note": "n " * 60, "boats": boats})
    search, _ = holding([*step("a", text, path="OBUT9V")])
    assert "\nBOAT9; Lerwick; 9; 9" in search("read_file OBUT9V")


def test_a_table_below_another_match_is_not_cut():
    """A table has the room of a table also where it is the second match."""
    legs = [{"from": f"A{n}", "to": f"B{n}", "flight": f"HAT{n:03}", "price": n} for n in range(16)]
    call = {"booking": "OBUT9V", "legs": [leg["flight"] for leg in legs], "pay": "gift card " * 9}
    booking = json.dumps({"booking": "OBUT9V", "cabin": "economy", "legs": legs, "bags": 1})
    asked = [*step("c1", booking, booking="OBUT9V"), *step("c2", "Error: no seats", **call)]
    search, _ = holding([user("Look."), *asked])
    answer = search("booking OBUT9V")
    for line in ("Error: no seats", "A0; B0; HAT000; 0", "A15; B15; HAT015; 15"):
        assert line in answer
