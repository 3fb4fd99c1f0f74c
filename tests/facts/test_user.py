"""The user's own words: rules, pastes, values, and what a later word replaced."""

from __future__ import annotations

import pytest

from praison_compressor.facts import Said, extract
from praison_compressor.facts.corrections import sentences
from praison_compressor.facts.values import values_of


def spoken(*texts: str) -> tuple[Said, ...]:
    """What a user said in messages of his own."""
    return extract([{"role": "user", "content": text} for text in texts]).user


@pytest.mark.parametrize(
    ("first", "later", "old"),
    [
        ("Use port 8080.", "No, use port 9090.", ("8080",)),
        ("Use port 8080.", "Use 9090 instead of 8080.", ("8080",)),
        ("Use port 8080.", "Use port 9090.", ("8080",)),
        ("Look at part 3 first.", "Look at part 4 first.", ()),
        ("Use port 8080.", "Also use port 9090.", ()),
        ("Use port 8080.", "Use the file src/a.py.", ()),
        ("Use port 8080.", "No, use port 8080.", ()),
        ("Write to src/a.py please.", "Actually write to src/b.py please.", ("src/a.py",)),
        ("Call it \"alpha\".", "Rather call it \"beta\".", ("\"alpha\"",)),
        ("Fetch https://a.b/c today.", "Sorry, fetch https://a.b/d today.", ("https://a.b/c",)),
        ("Name it user_id.", "Name it account_id.", ("user_id",)),
        ("Set DEBUG in the config.", "No, set TRACE in the config.", ("DEBUG",)),
        ("The timeout is 30s.", "The timeout is 60s.", ("30s",)),
        ("billing_port = 8080", "billing_port = 9090", ("8080",)),
        ("billing_port = 8080", "shipping_port = 9090", ()),
        ("Deploy v1.2 of billing.", "Actually the weather of Paris has 3 clouds over trees.", ()),
    ],
)  # fmt: skip
def test_a_later_value_replaces_an_earlier_one_of_the_same_matter(
    first: str, later: str, old: tuple[str, ...]
) -> None:
    """A correction that says so, or the very same sentence with another value."""
    before, after = spoken(first, later)
    assert before.old_values == old
    assert before.superseded_by == (later if old else None)
    assert before.superseded_at == (1 if old else None)
    assert after.superseded_by is None


def test_one_message_does_not_correct_itself() -> None:
    """Two values in one message are two values."""
    assert [s.old_values for s in spoken("Use port 8080. Use port 9090.")] == [(), ()]


def test_the_newest_claim_is_the_one_that_is_corrected() -> None:
    """And what it had replaced stays replaced."""
    first, second, third = spoken("Use port 8080.", "Use port 9090.", "Use port 7070.")
    assert (first.old_values, second.old_values, third.old_values) == (("8080",), ("9090",), ())


def test_rules_of_the_session_are_known_and_pastes_are_not_words() -> None:
    """Long material comes after the user's words: four sentences of it are still theirs."""
    rule, request = spoken("Always run the linter.", "Run the linter.")
    assert (rule.standing, request.standing) == (True, False)
    paste = "\n".join(f"line number {n} must stay" for n in range(100))
    found = spoken(paste)
    assert [s.pasted for s in found[:5]] == [0, 0, 0, 0, 1]
    assert (found[3].standing, found[4].standing) == (True, False)
    assert {s.pasted for s in found} == {0, 1, 2}
    assert spoken("short\n" * 15)[-1].pasted == 0
    assert len(spoken("\n".join(["one two three"] * 4 + ["two words"] * 20))) == 4
    mixed = ["one two three"] * 4 + ["two words", "three whole words"] * 20
    assert len(spoken("\n".join(mixed))) == 4 + 20


def test_how_long_a_text_is_pasted_material() -> None:
    """Past fifteen line ends or fifteen hundred characters; two thousand of them come first."""

    def pasted(text: str) -> list[int]:
        return [said.pasted for said in spoken(text)]

    sentence = "This is one of many such sentences, mind it. "
    fits = (sentence * 40)[:1_500]
    assert set(pasted(fits)) == {0}
    assert set(pasted(fits + "x")) == {0, 1}
    assert pasted("a b c\n" * 15 + "a b c") == [0] * 16
    assert pasted("a b c\n" * 16) == [0] * 4 + [1] * 12
    assert [s.pasted for s in spoken("a b c\n" * 400)].count(1) == 2_000 // 6 - 4
    line = " ".join(["word"] * 20)  # with the end of the line a hundred characters
    assert pasted("\n".join([line] * 25)) == [0] * 4 + [1] * 16 + [2] * 5


def test_sentences_and_their_values() -> None:
    """Whitespace flattened, marks at the end left out, each value with its kind."""
    assert sentences("One.  Two!\n\nThree  four?  ") == ["One.", "Two!", "Three four?"]
    found = values_of('Set PORT to 8080, "my name", src/a.py or b.txt and user_id at https://x.y.')
    assert found == {
        "PORT": "name",
        "8080": "number",
        '"my name"': "quoted",
        "src/a.py": "path",
        "b.txt": "path",
        "user_id": "name",
        "https://x.y": "url",
    }
    assert values_of("Please Set it now or IT") == {}
    assert values_of("it's the bg color that doesn't change") == {}
    assert values_of("a price of 1,000, or 12,500.50") == {"1,000": "number", "12,500.50": "number"}
    assert values_of("v1.2 and 50% and camelCase") == {
        "v1.2": "number",
        "50%": "number",
        "camelCase": "name",
    }


def test_only_short_sentences_claim_values() -> None:
    """Three hundred characters: a longer one is a text that has numbers in it."""
    fits = "Use port 8080 " + "x" * (300 - 15) + "."
    assert len(fits) == 300
    assert spoken(fits, "No, use port 9090.")[0].old_values == ("8080",)
    longer = "Use port 8080 " + "x" * (301 - 15) + "."
    assert spoken(longer, "No, use port 9090.")[0].old_values == ()


def test_a_correction_reaches_back_sixty_sentences() -> None:
    """Further back another matter was spoken of."""
    between = [f"See user_{n} there." for n in range(61)]
    assert spoken("Use port 8080.", *between[:59], "No, use port 9090.")[0].old_values == ("8080",)
    assert spoken("Use port 8080.", *between, "No, use port 9090.")[0].old_values == ()


@pytest.mark.parametrize(
    ("value", "kind"),
    [("'a b'", "quoted"), ("`a`", "quoted"), ("ab", None), ("Ab", None), ("AB", None),
     ("ABC", "name"), ("aBc", "name"), ("a-b", "name"), ("a1", "name"), ("1", "number"),
     ("1.2.3", "number"), ("12ms", "number"), ("12abcd", "name"), ("a/b", "path"),
     ("a.py", "path"), ("http://a", "url"), ("ftp://a", "url"), ("httpx", None), ("X_1", "name"),
     ("x.yz12345", "name"), ("ABCs", None)],
)  # fmt: skip
def test_what_kind_of_value_a_word_is(value: str, kind: str | None) -> None:
    """Ordinary words are none."""
    assert values_of(value).get(value) == kind
