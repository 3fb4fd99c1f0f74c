"""`compress` and `inspect` on files, as a person runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import check
from praison_compressor.testing import Failure, LocalProvider
from tests.helpers.command import Run
from tests.helpers.transcripts import step

Message = dict[str, Any]
Writer = Callable[..., tuple[str, ...]]


def transcript(turns: int = 30) -> list[Message]:
    """A task and many turns with a fact in each."""
    messages: list[Message] = [
        {"role": "system", "content": "You keep the books."},
        {"role": "user", "content": "Audit the ledgers; never change LEDGER-7."},
    ]
    for number in range(turns):
        rows = "\n".join(f"row {row}: {number * row} cents" for row in range(30))
        messages += [
            *step(f"call_{number}", f"FACT-{number}\n{rows}", "read_ledger", ledger=number),
            {"role": "assistant", "content": f"Ledger {number} balances."},
            {"role": "user", "content": f"Good. Go on with ledger {number + 1}."},
        ]
    return messages[:-1]


# ---------------------------------------------------------------- what is accepted


def shapes(messages: list[Message]) -> dict[str, str]:
    return {
        "a JSON list": json.dumps(messages),
        "an object": json.dumps({"id": 1, "messages": messages}),
        "a message a line": "\n".join(map(json.dumps, messages)),
        "a conversation a line": json.dumps(messages) + "\n",
        "with a byte order mark": "\ufeff" + json.dumps(messages),
        "with empty lines": "\n\n".join(map(json.dumps, messages)) + "\n\n",
    }


def test_every_documented_shape_of_a_transcript_is_read(tmp_path: Path, run: Run) -> None:
    """All of them are the same conversation."""
    messages, path = transcript(3), tmp_path / "transcript"
    for shape, text in shapes(messages).items():
        path.write_text(text, encoding="utf-8")
        done = run("compress", path, "--json")
        assert (done.code, done.json["messages"]) == (0, messages), shape


def test_one_of_several_conversations_must_be_chosen(tmp_path: Path, run: Run) -> None:
    """A file with several is not guessed about: the message says how to choose."""
    path = tmp_path / "several.jsonl"
    path.write_text("\n".join(json.dumps({"messages": transcript(n)}) for n in (2, 3, 4)))
    refused = run("compress", path)
    assert refused.code == 2
    assert "--conversation 1 to 3" in refused.err
    chosen = run("compress", path, "--conversation", 3, "--json")
    assert sum(part["messages"] for part in chosen.json["parts"]) == len(transcript(4))
    assert run("compress", path, "--conversation", 4).code == 2


BAD = {
    "empty": b"",
    "blank": b" \n ",
    "not UTF-8": b"\xff\xfe\x00\x01",
    "not JSON": b"hello",
    "broken JSON": b'[{"role": "user", "content": "x"},\n',
    "broken line": b'{"role": "user", "content": "x"}\n{"role": \n',
    "a number": b"7",
    "a list of numbers": b"[1, 2]",
    "an empty list": b"[]",
    "no role": b'[{"content": "x"}]',
    "an unknown role": b'[{"role": "oracle", "content": "x"}]',
    "messages are no list": b'{"messages": 3}',
    "nested too deeply": b"[" * 100_000,
}


def test_what_is_no_transcript_is_one_line_and_exit_code_2(tmp_path: Path, run: Run) -> None:
    """Nothing on stdout, one line on stderr that names the file."""
    path = tmp_path / "bad.json"
    for name, held in BAD.items():
        path.write_bytes(held)
        done = run("compress", path)
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1), name
        assert "bad.json" in done.err or "messages[" in done.err


def test_odd_numbers_names_and_paths_are_one_line(file: Path, view: Path, run: Run) -> None:
    """And the documented exit code, without a traceback."""
    for code, command in (
        (2, ("compress", "missing.json")),
        (2, ("compress", "/")),
        (2, ("compress", file, "--window", 0)),
        (2, ("inspect", file, "--target", "9" * 400)),
        (2, ("report", file, "--window", "9" * 400)),
        (2, ("compress", file, "--window", 8_000, "--out", "x" * 300)),
        (3, ("compress", file, "--target", 50)),  # with the numbers
        (4, ("report", "x" * 300)),
        (4, ("report", "half \udcff")),
        (4, ("show", "half \udcff")),
        (4, ("sessions", "--namespace", "half \udcff")),
    ):
        done = run(*command)
        assert (done.code, done.out, len(done.err.splitlines())) == (code, "", 1), done.err
        assert code != 3 or "need" in done.err


# ---------------------------------------------------------------- what comes out


def test_the_table_adds_up_and_agrees_with_the_library(file: Path, run: Run) -> None:
    """Every message is in exactly one part; view and totals are the library's own. Without a model
    the summary is static, and the table says so."""
    shown = run("compress", file, "--window", 8_000).out
    for word in ("head", "summary", "tail", "tokens before", "tokens after", "total", "% saved"):
        assert word in shown
    assert "Method: static (no model was given" in shown
    assert ("\x1b" in shown, "│" in shown) == (False, False)
    assert shown.splitlines()[0].split()[0] == "part"  # one line a row, for a program
    done = run("compress", file, "--window", 8_000, "--json").json
    compressor = ContextCompressor(CompressorConfig(context_window=8_000))
    assert done["messages"] == compressor.compress_sync(transcript()).messages
    parts = done["parts"]
    opens = done["tokens_before"] - sum(part["tokens_before"] for part in parts)
    assert sum(part["messages"] for part in parts) == len(transcript())
    assert done["tokens_after"] == opens + sum(part["tokens_after"] for part in parts)
    assert done["tokens_saved"] == done["tokens_before"] - done["tokens_after"] > 0
    assert parts[0]["name"] == "head"
    assert parts[-1]["name"] == "tail"


def test_the_view_is_written_valid_in_both_formats(file: Path, tmp_path: Path, run: Run) -> None:
    """A JSON list, or one message a line, or alone on stdout; the transcript is untouched."""
    before = file.read_bytes()
    alone = run("compress", file, "--window", 8_000, "--out", "-")
    assert "Method" in alone.err
    assert run("compress", file, "--window", 8_000, "--out", file).code == 2
    for name in ("view.json", "view.jsonl"):
        assert run("compress", file, "--window", 8_000, "--out", tmp_path / name).code == 0
    whole = json.loads((tmp_path / "view.json").read_text())
    lines = [json.loads(line) for line in (tmp_path / "view.jsonl").read_text().splitlines()]
    assert whole == lines == json.loads(alone.out)
    assert check(whole) == []
    assert file.read_bytes() == before


def test_what_fits_is_left_alone(file: Path, run: Run) -> None:
    """Nothing to do is a result, not an error, and says what would ask for more."""
    done = run("compress", file)
    assert done.code == 0
    assert "it fits" in done.out
    assert "--force" in done.out
    assert run("compress", file, "--json").json["messages"] == transcript()


def test_a_model_writes_the_summary_where_one_is_named(
    file: Path, run: Run, writer: Writer, provider: LocalProvider
) -> None:
    """Its text is in the view, its usage in the result. One that fails leaves a static summary and
    its reason: a view was made."""
    given = ("compress", file, "--window", 8_000, *writer("The ledgers were audited."))
    done = run(*given, "--json")
    assert done.code == 0, done.err
    assert done.json["summary_method"] == "model"
    assert done.json["usage"]["prompt_tokens"] > 0
    assert "The ledgers were audited." in json.dumps(done.json["messages"])
    provider.answer_with(lambda asked: Failure(401, "Incorrect API key provided."))
    failed = run(*given)
    assert failed.code == 0
    assert "static, because writer gave no usable summary" in failed.out
    assert "Incorrect API key" in failed.out


def test_inspect_promises_what_compress_does(file: Path, run: Run) -> None:
    """The same head and tail, and a summary no larger than the room it names; each part has a
    reason, each message a fate."""
    for given in ("--window 8000", "--target 2000", "--window 8000 --keep-tokens 900"):
        options = given.split()
        said = run("inspect", file, *options, "--json").json["parts"]
        done = run("compress", file, *options, "--json").json["parts"]
        assert [(p["name"], p["messages"]) for p in said] == [
            (p["name"], p["messages"]) for p in done
        ]
        assert all(
            then["tokens_after"] <= now["tokens_after"]
            for now, then in zip(said, done, strict=True)
        )
    done = run("inspect", file, "--window", 8_000, "--messages")
    assert done.code == 0
    assert "kept: system prompt" in done.out
    assert "protect_last_n_tokens" in done.out
    found = run("inspect", file, "--window", 8_000, "--json").json
    assert [message["index"] for message in found["messages"]] == list(range(len(transcript())))
    assert run("inspect", file).out.count("Nothing would be done") == 1


def test_version_and_help(run: Run) -> None:
    """Both end with code 0; a command line without a command explains itself."""
    assert run("--version").out.startswith("praison-compressor 0.")
    assert "--window" in run("compress", "--help").out
    assert "compress" in run().out + run().err
    assert run("compres", "x").code == 2
