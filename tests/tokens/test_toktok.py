"""toktok counts as tiktoken does or not at all: the real one where it is installed, broken ones."""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praison_compressor.tokens import encodings as loading
from praison_compressor.tokens.encodings import (
    KNOWN,
    TRIED,
    Vocabulary,
    common,
    toktok_of,
    vocabulary_for,
)
from tests.helpers.texts import prose
from tests.tokens.test_vocabularies import MODELS, ODD, forget_vocabularies

INSTALLED = importlib.util.find_spec("toktok") is not None
needs_toktok = pytest.mark.skipif(not INSTALLED, reason="toktok is not installed")


@pytest.fixture(scope="module", params=MODELS.values())
def both(request: pytest.FixtureRequest) -> tuple[Vocabulary, Vocabulary]:
    """One vocabulary by toktok and by tiktoken."""
    return vocabulary_for(request.param), vocabulary_for(request.param, fast=False)


# ---------------------------------------------------------------- the real one


def test_it_counts_where_it_is_installed(both: tuple[Vocabulary, Vocabulary]) -> None:
    """Nothing else has to be set; what is said of the vocabulary does not depend on it."""
    toktok, tiktoken = both
    assert (toktok.by == "toktok-rs") == INSTALLED
    assert tiktoken.by == "tiktoken"
    assert (toktok.source, toktok.exact) == (tiktoken.source, tiktoken.exact)


def test_what_it_is_tried_on_has_the_counts_of_tiktoken(
    both: tuple[Vocabulary, Vocabulary],
) -> None:
    """A sound toktok is not refused, nor a wrong one taken, for a figure of ours."""
    _, tiktoken = both
    assert list(map(tiktoken.count, TRIED)) == KNOWN[tiktoken.source]


AROUND = (
    "a{0}B '{0} {0}{0}1{0}2\n{0} {0}>m 1{0}234 the{0}the's{0}  A{0}/{0}\n/'{0}'s{0}e'v{0}'LL{0}"
)


@needs_toktok
def test_every_character_that_is_left_to_it_is_counted_as_by_tiktoken(
    both: tuple[Vocabulary, Vocabulary],
) -> None:
    """Between letters, digits, spaces, marks and contractions: in any place it may stand."""
    texts = [AROUND.format(chr(code)) for code in range(sys.maxunicode) if common(chr(code))]
    assert len(texts) > 44_000
    toktok, tiktoken = both
    sizes = list(map(tiktoken.count, texts))
    assert [t for t, size in zip(texts, sizes, strict=True) if toktok.count(t) != size] == []
    assert toktok.count_all(texts) == sizes


@needs_toktok
@settings(max_examples=40)
@given(
    parts=st.lists(
        st.tuples(st.sampled_from([*ODD, prose(30)]), st.integers(1, 40_000)),
        min_size=1,
        max_size=6,
    )
)
def test_a_long_text_has_one_count_whoever_counts(
    both: tuple[Vocabulary, Vocabulary], parts: list[tuple[str, int]]
) -> None:
    """Runs of anything, longer than what is counted at once."""
    text = "".join((part * length)[:length] for part, length in parts)
    toktok, tiktoken = both
    assert toktok.count(text) == tiktoken.count(text)


@pytest.mark.parametrize("text", ["it'\u017f", "a\ud83d", "\U00033000>m", "\ua7cea", "বাংলা"])
def test_what_the_two_may_see_otherwise_is_left_to_tiktoken(text: str) -> None:
    """The long s, halves of pairs, letters that one of them does not know: counted, as ever."""
    assert not common(text)
    assert vocabulary_for("gpt-4o").count(text) == vocabulary_for("gpt-4o", fast=False).count(text)


def test_tiktokens_copy_of_the_vocabulary_is_loaded_for_the_first_text_that_needs_it() -> None:
    """What is not needed takes no time and no 90 MB."""
    script = """
import sys
from praison_compressor.tokens.counter import TokenCounter
counter = TokenCounter("gpt-4o")
counts = [counter.text("hello world, \\u4f60\\u597d")]
print(counter.vocabulary.by, "tiktoken" in sys.modules)
counter.text("it'\\u017f")
print("tiktoken" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    before = "toktok-rs False" if INSTALLED else "tiktoken True"
    assert found.stdout.decode().splitlines() == [before, "True"]


@needs_toktok
def test_it_counts_where_litellm_has_no_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """It carries its own; only what is left to tiktoken is estimated then."""
    forget_vocabularies()
    monkeypatch.setattr(loading, "litellm_folder", lambda: Path("nowhere"))
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    vocabulary = vocabulary_for("gpt-4o")
    counts = [vocabulary.count(text) for text in ("Hello, world", "Hello, world\ud83d")]
    forget_vocabularies()
    assert vocabulary.exact
    assert counts == [3, 5]


# ---------------------------------------------------------------- one that is wrong


class PanicException(BaseException):
    """As Rust's panics come to Python: no Exception."""


Tokens = Callable[[str, str], object]


def right(text: str, name: str) -> int:
    """What toktok answers while it is tried."""
    return KNOWN[name][TRIED.index(text)]


def wrong(text: str, name: str) -> int:
    return len(text)


def raising(text: str, name: str) -> int:
    raise ValueError("unknown encoding")


def panicking(text: str, name: str) -> int:
    raise PanicException("index out of bounds")


def worded(text: str, name: str) -> str:
    return "three"


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a toktok that counts so, one text and many, in the place of the real one."""

    def put(one: Tokens | None, many: Tokens | None) -> None:
        module = types.ModuleType("toktok")
        if one is not None:
            module.__dict__["truncate"] = lambda text, most, name: (text, one(text, name))
        if many is not None:
            module.__dict__["batch_count"] = lambda texts, name, threads: [
                many(text, name) for text in texts
            ]
        monkeypatch.setitem(sys.modules, "toktok", module)

    return put


@pytest.mark.parametrize("tokens", [None, wrong, raising, panicking, worded])
@pytest.mark.parametrize("fails", ["one", "many"])
def test_one_that_does_not_count_as_tiktoken_is_not_taken(
    install: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    tokens: Tokens | None,
    fails: str,
) -> None:
    """Other counts, errors, panics, another interface: told once, and tiktoken counts."""
    install(**{"one": right, "many": right, fails: tokens})
    assert toktok_of("o200k_base", len) is None
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "tiktoken" in caplog.text


def test_none_at_all_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An extra that nobody asked for is not missed."""
    monkeypatch.setitem(sys.modules, "toktok", None)
    assert toktok_of("o200k_base", len) is None
    assert caplog.records == []


@pytest.mark.parametrize("fault", [ValueError, PanicException, MemoryError])
@pytest.mark.parametrize("many", [False, True])
def test_one_that_fails_later_is_left(
    install: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    fault: type[BaseException],
    many: bool,
) -> None:
    """The text that it fails at is counted all the same; told once; it is not asked again."""
    asked: list[str] = []

    def failing(text: str, name: str) -> int:
        if text in TRIED:
            return right(text, name)
        asked.append(text)
        raise fault("no more")

    install(failing, failing)
    count = toktok_of("o200k_base", len)
    assert count is not None
    texts = ["abc", "abcd", TRIED[0]]
    found = count.all(texts) if many else list(map(count, texts))
    assert found == count.all(texts) == list(map(len, texts))
    assert asked == ["abc"]
    assert len(caplog.records) == 1
    assert "tiktoken counts from now on" in caplog.text


@pytest.mark.parametrize("many", [False, True])
def test_an_interrupt_is_no_fault_of_it(install: Callable[..., None], many: bool) -> None:
    """Ctrl-C while it counts stops what the user wanted stopped, and costs nobody the library."""
    waiting = [KeyboardInterrupt()]

    def interrupted(text: str, name: str) -> int:
        if text in TRIED:
            return right(text, name)
        if waiting:
            raise waiting.pop()
        return 7

    install(interrupted, interrupted)
    count = toktok_of("o200k_base", len)
    assert count is not None
    with pytest.raises(KeyboardInterrupt):
        count.all(["abc"]) if many else count("abc")
    assert (count("abc"), count.all(["abc"])) == (7, [7])
