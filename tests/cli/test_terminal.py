"""No text of a transcript reaches a terminal as anything but text."""

import io
import json
import re
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.cli import terminal
from praison_compressor.cli.terminal import Table, print_blocks, with_title
from praison_compressor.messages.display import clean, one_line

HOSTILE = {
    "colour": "\x1b[31mred\x1b[0m",
    "cursor": "a\x1b[2J\x1b[Hb",
    "title": "\x1b]0;owned\x07text",
    "clipboard": "\x1b]52;c;ZXZpbA==\x1b\\text",
    "link": "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "eight bit": "\x9b31mred\x9d0;x\x9c",
    "device": "\x1bPq\x1b\\text",
    "unclosed": "\x1b]0;the rest of the text",
    "overwrite": "good\revil",
    "backspace": "abc\b\b\bxyz",
    "bell": "\x07\x07",
    "reordered": "\u202etxet\u202c",
    "isolated": "\u2066x\u2069",
    "half a character": "\ud83d",
    "separators": "a\u2028b\u2029c\x0bd\x0ce\x85f",
}
ALLOWED = {"\n", "\t"}


@given(st.text())
def test_any_text_is_clean_after_cleaning(text):
    """A cleaned text needs no more cleaning to be printed."""
    left = clean(text)
    assert clean(left) == left
    left.encode("utf-8")
    assert "\x1b" not in left
    assert "\n" not in one_line(text)


def test_markup_is_text():
    """Square brackets of a transcript are printed as they are."""
    out = io.StringIO()
    table = Table(["[a]", "b#"], [["[link=http://evil]x[/link]", 1]])
    print_blocks(
        ["[bold red]x[/bold red] [/nope] :smile:", table, *with_title("[title]", "[/]")], out
    )
    for text in ("[bold red]x[/bold red] [/nope] :smile:", "[link=http://evil]x", "[title]", "[/]"):
        assert text in out.getvalue()


@pytest.fixture
def printed(monkeypatch):
    """Return a function that prints a table in a terminal of the given columns."""

    def lines(columns: int, table: Table) -> list[str]:
        for name, value in {"COLUMNS": columns, "FORCE_COLOR": 1, "TERM": "xterm"}.items():
            monkeypatch.setenv(name, str(value))
        print_blocks([table], out := io.StringIO())
        return clean(out.getvalue()).splitlines()

    return lines


@pytest.mark.parametrize("columns", [60, 80, 132])
def test_a_table_fits_a_terminal_without_breaking_a_word(columns, printed):
    """A list has one line a row in a terminal of any width."""
    names = ("reference", "kind", "by", "messages#", "tokens before#", "tokens after#", "begins")
    rows = [("s1 to s12", "summary, gone", "gpt-4o-mini", 12, 123_456, 1_234, "text " * 40)] * 3
    lines = printed(columns, Table(names, rows, spare=("by", "messages#", "tokens before#")))
    assert len(lines) == 1 + len(rows)
    assert max(map(len, lines)) <= columns
    assert {line.split()[0] for line in lines} == {"reference", "s1"}
    assert all("summary, gone" in line for line in lines[1:])
    assert ("gpt-4o-mini" in lines[1]) == (columns == 132)


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_reason_is_whole_in_a_narrow_terminal(columns, printed):
    """A table that wraps loses nothing."""
    reason = "kept: the newest that fit (--keep-tokens=20_000); 2 messages chosen by the user"
    lines = printed(columns, Table(("part", "tokens#", "what"), [("tail", 12, reason)], wraps=True))
    assert max(map(len, lines)) <= columns
    assert " ".join(" ".join(lines[1:]).split()) == f"tail 12 {reason}"


class Terminal(io.StringIO):
    """A stream whose `isatty` is True."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "seconds", "drawn"),
    [(Terminal(), 2.1, True), (Terminal(), 1.9, False), (io.StringIO(), 2.1, False)],
    ids=["terminal", "short", "pipe"],
)
def test_a_long_wait_is_shown_in_a_terminal(stream, seconds, drawn, monkeypatch):
    """A wait of over two seconds is shown in terminals only."""

    class Timer:
        """A timer of a wait that takes `seconds`; `join` waits for the rest."""

        def __init__(self, wait, draw):
            self.draws = [draw]
            self.is_over = wait <= seconds

        def start(self):
            if self.is_over:
                self.draws.pop()()

        def cancel(self):
            self.draws.clear()

        def join(self):
            for draw in self.draws:
                draw()

    monkeypatch.setattr(threading, "Timer", Timer)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    with terminal.show_progress("Counting tokens"):
        pass
    assert ("Counting tokens" in stream.getvalue()) == drawn


@pytest.fixture
def hostile(tmp_path):
    """Return the path of a transcript with hostile texts."""
    path, evil = tmp_path / "hostile.json", "".join(HOSTILE.values()) + "[bold]markup[/nope]"
    messages = [{"role": "user", "content": "Begin."}]
    for number in range(60):
        messages.append({"role": "assistant", "content": f"{number} {evil} " + "word " * 60})
        messages.append({"role": "user", "content": f"{evil} go on"})
    path.write_text(json.dumps(messages))
    return path


def test_commands_show_hostile_transcripts_harmlessly(run, hostile):
    """Tables, texts and JSON of a hostile transcript have no control character."""
    for command, option in (("compress", "--show"), ("inspect", "--messages")):
        for form in ((), ("--json",)):
            done = run(command, hostile, "--window", 4_000, option, *form)
            assert done.code == 0, done.err
            shown = [c for c in done.out + done.err if c not in ALLOWED]
            assert [c for c in shown if ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e"] == []


def test_a_transcript_that_is_written_is_harmless_and_the_same(run, hostile):
    """A written transcript keeps control characters as escapes."""
    # With half a character in it all would be escaped.
    hostile.write_text(hostile.read_text().replace(r"\ud83d", ""))
    whole = json.loads(hostile.read_text())
    assert run("compress", hostile, "--window", 4_000, "--session", "s").code == 0
    assert run("restore", "s", "--out", "lines.jsonl").code == 0
    lines = Path("lines.jsonl").read_text(encoding="utf-8")
    shown = run("restore", "s", "--out", "-").out
    both = shown + lines
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", both)
    assert json.loads(shown) == [json.loads(line) for line in lines.splitlines()] == whole


def test_an_error_that_quotes_a_transcript_is_harmless(run, tmp_path):
    """An error names a hostile role on one line, without control characters."""
    path = tmp_path / "evil.json"
    path.write_text(json.dumps([{"role": "\x1b]0;owned\x07\nuser", "content": "x"}]))
    done = run("compress", path)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "\x1b" not in done.err
