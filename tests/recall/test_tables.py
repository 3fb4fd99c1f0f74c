"""JSON of like objects is laid out as a table."""

import json

from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.recall.layout import as_table, table_of

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
