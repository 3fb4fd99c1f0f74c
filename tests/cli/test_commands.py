"""What all commands share; `compress` and `inspect` on files, as a person runs them."""

import json
import re
import shlex
from pathlib import Path

import pytest

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages.display import clean
from praison_compressor.testing import Failure
from tests.helpers.command import RAW, SUMMARIZE
from tests.helpers.readme_tables import commands, example
from tests.helpers.transcripts import audit, find_repairs, step

# ---------------------------------------------------------------- every command


def test_each_commands_example_works(run, file):
    """The example that ends each command's help prints a readable answer."""
    Path("talk.jsonl").write_bytes(file.read_bytes())
    store = ("--window", 8_000, "--session", "audit", "--store", "ledger.db")
    assert run("compress", file, *store).code == 0
    for name in sorted(commands().keys() - {"demo", "doctor"}, key=lambda name: name == "forget"):
        line = example(commands()[name])
        assert run(name, "--help").out.splitlines()[-1].strip() == f"$ {line}"
        program, *arguments = shlex.split(line)
        assert (program, arguments[0]) == ("praison-compressor", name)
        done = run(*arguments)
        assert (done.code, done.err) == (0, ""), name
        assert RAW.findall(done.out) == [], name


def test_the_version_is_printed(run):
    """`--version` prints the program's name and version."""
    assert run("--version").out.startswith("praison-compressor 0.")


def test_help_fits_the_terminal(run, monkeypatch):
    """Help is plain lines within the terminal's width."""
    monkeypatch.setenv("COLUMNS", "60")
    shown = run("compress", "--help").out
    assert ("[OPTIONS] FILE\n" in shown, "│" in shown) == (True, False)
    assert max(map(len, shown.splitlines())) <= 60


def test_a_misspelled_command_is_answered_with_the_nearest_one(run):
    """An unknown command is answered by one line with a way on."""
    for name in commands():
        wrong = name[0] + name[2:]
        done = run(wrong, "x")
        said = f"praison-compressor: no command {wrong}; did you mean {name}?\n"
        assert (done.code, done.out, done.err) == (2, "", said)
    assert "praison-compressor -h lists the commands" in run("fly").err


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("se", "plain,sessions\nplain,search\n"), ("fly --", "plain,--version\nplain,--help\n")],
)
def test_a_shell_completes_commands(typed, completed, run, monkeypatch):
    """The documented line of a shell's start-up file completes names."""
    words = {"COMP_WORDS": f"praison-compressor {typed}", "COMP_CWORD": str(len(typed.split()))}
    for name, value in {**words, "_PRAISON_COMPRESSOR_COMPLETE": "bash_complete"}.items():
        monkeypatch.setenv(name, value)
    assert run()[1:] == (completed, "")


def test_any_option_of_the_configuration_is_set(file, run):
    """`--set` passes numbers, ratios, switches, JSON and texts to the compressor."""
    given = ("output_reserve=1k", "trigger_ratio=0.5", "recall=true", "quotes-budget-tokens=none")
    pairs = (*given, 'tool_policies={"read_*": "summarize"}')
    settings = [word for pair in pairs for word in ("--set", pair)]
    done = run("compress", file, "--window", "8k", *settings, "--json").json
    ours = CompressorConfig(
        context_window=8_000,
        output_reserve=1_000,
        trigger_ratio=0.5,
        recall=True,
        tool_policies={"read_*": "summarize"},
    )
    assert done["messages"] == ContextCompressor(ours).compress_sync(audit()).messages


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--set", "trigger_ration=0.5"), "did you mean 'trigger_ratio'?"),
        (("--set", "trigger_ratio=2"), "trigger_ratio=2: expected a number"),
        (("--set", "trigger_ratio"), "expected OPTION=VALUE"),
        (("--set", "tool_policies=never"), "tool_policies='never': expected"),
        (("--window", "many"), "'--window': many: expected a whole number"),
        (("--window", "9" * 400), "expected a whole number"),
        (("--window", "9" * 15), "up to 1,000,000,000,000"),
        (("--window", "1,5k"), "1,5k: expected a whole number"),
        (("--window", "8,00"), "8,00: expected a whole number"),
        (("--window", 0), "--window=0: expected"),
        (("--set", "context_window=-1"), "--window=-1: expected"),
        (("--keep", "s1.400"), "--keep='s1.400': no message"),
        (("--since", "900"), "--since=900: the transcript has 121 messages"),
        (("--since", "90", "--until", "9"), "--since=90: is after --until=9"),
    ],
)
def test_a_wrong_option_is_named(given, said, file, run):
    """A wrong option is refused by an error that names what was expected."""
    refused = run("compress", file, *given)
    assert (refused.code, refused.out, said in refused.err) == (2, "", True), refused.err
    assert "Traceback" not in refused.err


def test_a_remedy_names_options_of_the_command_line(file, run):
    """The remedy of BudgetTooSmall names command-line flags, not options of the library."""
    small = run("compress", file, "--target", 50).err
    assert "the budget is 50; raise --target" in small
    small += run("compress", file, "--window", 200).err
    assert "the budget is 200; use a model with a larger window, raise --window or lower" in small
    assert "or lower --set output_reserve" in small
    assert "context_window" not in small
    assert "target_tokens" not in small
    seen = run("inspect", file, "--window", "8k").out
    assert "the newest that fit (--keep-tokens=20_000)" in seen
    assert "(--set head_tokens=" in seen


def test_a_file_named_as_an_option_is_no_option(run):
    """An error repeats a file's name although the library has an option of that name."""
    assert "target_tokens: No such file" in run("compress", "target_tokens").err


# ---------------------------------------------------------------- what is accepted


def test_every_documented_shape_of_a_transcript_is_read(tmp_path, run):
    """Every documented shape of a file is read as the same conversation."""
    messages, path = audit(3), tmp_path / "transcript"
    whole, lines = json.dumps(messages), [*map(json.dumps, messages)]
    for shape, text in {
        "a JSON list": whole,
        "an object": json.dumps({"id": 1, "messages": messages}),
        "a message a line": "\n".join(lines),
        "a conversation a line": whole + "\n",
        "with a byte order mark": "\ufeff" + whole,
        "with empty lines": "\n\n".join(lines) + "\n\n",
    }.items():
        path.write_text(text, encoding="utf-8")
        done = run("compress", path, "--json")
        assert (done.code, done.json["messages"]) == (0, messages), shape


def test_one_of_several_conversations_must_be_chosen(tmp_path, run):
    """A file with several conversations is refused until one is chosen."""
    path = tmp_path / "several.jsonl"
    path.write_text("\n".join(json.dumps({"messages": audit(n)}) for n in (2, 3, 4)))
    refused = run("compress", path)
    assert refused.code == 2
    assert "--conversation 1 to 3" in refused.err
    chosen = run("compress", path, "--conversation", 3, "--json")
    assert sum(part["messages"] for part in chosen.json["parts"]) == len(audit(4))
    assert run("compress", path, "--conversation", 4).code == 2


MESSAGE = b'{"role": "user", "content": "x"}'
BAD = {
    "empty": (b"", "expected a JSON list"),
    "blank": (b" \n ", "expected a JSON list"),
    "not UTF-8": (b"\xff\xfe\x00\x01", "expected a JSON list"),
    "not JSON": (b"hello", "expected a JSON list"),
    "broken JSON": (b"[" + MESSAGE + b",\n", "line 2, column 1: "),
    "broken line": ((MESSAGE + b"\n") * 3 + b'{"role": \n', "transcript: line 4, column 10: Expe"),
    "a number": (b"7", "found int"),
    "a list of numbers": (b"[1, 2]", "found int"),
    "an empty list": (b"[]", "holds no messages"),
    "no role": (b'[{"content": "x"}]', "an object without a role"),
    "unknown role": (b"[" + MESSAGE + b', {"role": "oracle"}]', "messages[1]: role 'oracle'"),
    "messages are no list": (b'{"messages": 3}', "an object without a role"),
    "nested too deeply": (b"[" * 100_000, "expected a JSON list"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_without_a_transcript_is_one_line_and_exit_code_2(name, tmp_path, run):
    """A file without a transcript gives one line on stderr that names the fault's place."""
    path, (content, said) = tmp_path / "bad.json", BAD[name]
    path.write_bytes(content)
    done = run("compress", path)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert said in done.err


def test_odd_names_and_paths_are_one_line(file, view, run):
    """An odd name or path is refused in one line with the documented exit code."""
    for code, command in (
        (2, ("compress", "missing.json")),
        (2, ("compress", "/")),
        (2, ("compress", file, "--window", 8_000, "--out", "x" * 300)),
        (3, ("compress", file, "--target", 50)),
        (4, ("report", "x" * 300)),
        (4, ("report", "half \udcff")),
        (4, ("show", "half \udcff")),
        (4, ("sessions", "--namespace", "half \udcff")),
    ):
        done = run(*command)
        assert (done.code, done.out, len(done.err.splitlines())) == (code, "", 1), done.err


# ---------------------------------------------------------------- what comes out


def test_the_table_has_a_row_for_each_part(file, run):
    """The table's rows are the parts and their total."""
    shown = run("compress", file, "--window", 8_000).out
    for word in ("head", "summary s1", "tail", "tokens", "after", "total", "% saved"):
        assert word in shown
    assert "summarized now (static)" in shown
    assert "Method: static (no model was given" in shown
    assert ("\x1b" in shown, "│" in shown) == (False, False)
    assert shown.splitlines()[0].split()[0] == "part"  # one line a row, for a program


def test_the_parts_add_up_to_the_librarys_view(file, run):
    """The parts add up to the library's view."""
    done = run("compress", file, "--window", 8_000, "--json").json
    compressor = ContextCompressor(CompressorConfig(context_window=8_000))
    assert done["messages"] == compressor.compress_sync(audit()).messages
    parts = done["parts"]
    opens = done["tokens_before"] - sum(part["tokens_before"] for part in parts)
    assert sum(part["messages"] for part in parts) == len(audit())
    assert done["tokens_after"] == opens + sum(part["tokens_after"] for part in parts)
    assert done["tokens_saved"] == done["tokens_before"] - done["tokens_after"] > 0
    assert parts[0]["name"] == "head"
    assert parts[-1]["name"] == "tail"


def test_the_view_is_written_valid_in_both_formats(file, tmp_path, run):
    """The view is written as JSON or JSON Lines."""
    alone = run("compress", file, "--window", 8_000, "--out", "-")
    assert "Method" in alone.err
    for name in ("view.json", "view.jsonl"):
        assert run("compress", file, "--window", 8_000, "--out", tmp_path / name).code == 0
    whole = json.loads((tmp_path / "view.json").read_text())
    lines = [json.loads(line) for line in (tmp_path / "view.jsonl").read_text().splitlines()]
    assert whole == lines == json.loads(alone.out)
    assert find_repairs(whole) == []


def test_a_transcript_that_fits_is_left_alone(file, run):
    """A transcript that fits stays as it is without `--force`."""
    done = run("compress", file)
    assert done.code == 0
    assert "it fits" in done.out
    assert "--force" in done.out
    assert run("compress", file, "--json").json["messages"] == audit()


def test_a_model_writes_the_summary_where_one_is_named(file, run, writer):
    """A named model writes the summary."""
    summary = "The agent read the ledgers with read_ledger: FACT-3 and FACT-4 balance."
    done = run("compress", file, "--window", 8_000, *SUMMARIZE, *writer(summary), "--json")
    assert done.code == 0, done.err
    assert done.json["summary_method"] == "model"
    assert done.json["usage"]["prompt_tokens"] > 0
    assert summary in json.dumps(done.json["messages"])


def test_a_failed_models_reason_is_printed_once(file, run, writer, provider):
    """A static summary has the reason why the model's failed, once."""
    options = (*SUMMARIZE, *writer("unused"))
    provider.answer_with(lambda asked: Failure(401, "Incorrect API key provided."))
    failed = run("compress", file, "--window", 8_000, *options)
    assert failed.code == 0
    assert "static, because writer gave no usable summary" in failed.out
    assert (failed.out + failed.err).count("Incorrect API key") == 1


def test_inspect_promises_what_compress_does(file, run):
    """`inspect` shows the parts that `compress` makes."""
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


def test_inspect_says_what_becomes_of_each_message(file, run):
    """`inspect --messages` has a reason for each part of the messages."""
    done = run("inspect", file, "--window", 8_000, "--messages")
    assert done.code == 0
    assert "kept: system prompt" in done.out
    found = run("inspect", file, "--window", 8_000, "--json").json
    assert [message["index"] for message in found["messages"]] == list(range(len(audit())))


def test_inspect_leaves_a_transcript_that_fits(file, run):
    """`inspect` says once that nothing would be done."""
    assert run("inspect", file).out.count("Nothing would be done") == 1


def test_inspect_counts_a_summary_and_a_cut_output(file, run):
    """`inspect` counts what `compress` would replace."""
    file.write_text(json.dumps([*audit(), *step("c", "a long line of a ledger\n" * 500)]))
    out = run("inspect", file, "--window", 8_000, *SUMMARIZE).out
    assert "1 summary would be written. 1 tool output would be masked or cut." in out


def test_inspect_shows_what_compressing_now_costs(file, run):
    """`inspect` prices a compression if the model's prices are listed."""
    sums = r"compressing now (costs|saves) \$[\d.]+, saves \$[\d.]+ a request\n"
    for model, is_shown in (("claude-sonnet-4-5", True), ("unlisted-1", False)):
        out = run("inspect", file, "--window", "8k", "--model", model, "--force").out
        assert bool(re.search(sums, out)) == is_shown


def test_compress_does_what_inspect_showed(file, run):
    """`compress` writes what `inspect` showed."""
    given = (file, "--window", 8_000, *SUMMARIZE)
    parts = run("inspect", *given, "--json").json["parts"]
    (shown,) = (part for part in parts if part["to_write"])
    assert shown["reference"] == "s1"
    assert shown["summary"] in run("inspect", *given).out
    done = run("compress", *given, "--json").json
    (written,) = (part for part in done["parts"] if part["name"] == "summary")
    assert (written["summary"], written["tokens_after"]) == (
        shown["summary"],
        shown["tokens_after"],
    )


def test_references_of_inspect_are_taken_by_compress(file, run):
    """`--keep` and `--until` take the references that `inspect` showed."""
    given = (file, "--window", 8_000, *SUMMARIZE)
    messages = run("inspect", *given, "--json").json["messages"]
    inside = next(m for m in messages if "FACT-4" in m["text"])
    assert audit()[inside["index"]] not in run("compress", *given, "--json").json["messages"]
    kept = run("compress", *given, "--keep", inside["reference"], "--json").json
    assert audit()[inside["index"]] in kept["messages"]
    ended = run("compress", *given, "--until", inside["reference"], "--json").json
    assert sum(part["to_write"] for part in ended["parts"]) == 0
    assert audit()[inside["index"] :] == ended["messages"][-len(audit()[inside["index"] :]) :]
    wrong = run("compress", *given, "--keep", "s7.1")
    assert (wrong.code, "s7.1" in wrong.err) == (2, True)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_narrow_terminal_keeps_every_number(columns, file, run, monkeypatch):
    """A table keeps its numbers in a terminal of any width."""
    given = ("inspect", file, "--window", "8k", "--messages")
    found = run(*given, "--json").json
    for name, value in {"COLUMNS": columns, "FORCE_COLOR": 1, "TERM": "xterm"}.items():
        monkeypatch.setenv(name, str(value))
    lines = clean(run(*given).out).splitlines()
    rows = {words[0]: words for words in map(str.split, lines) if words}
    assert max(map(len, lines)) <= columns
    sums = [f"{found[name]:,}" for name in ("tokens", "tokens_after")]
    assert rows["total"][1:6] == ["121", "->", "32", *sums]
    assert {str(index) for index in range(121)} <= rows.keys()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--target", "Target 1,000 tokens.\n"),
        ("--window", "Window 1,000 tokens (--window), 747 of them usable: "),
    ],
)
def test_a_size_is_named_by_its_option(option, said, file, run):
    """`inspect` names a size by the option that set it."""
    assert run("inspect", file, option, "1k").out.startswith(said)


def test_compress_says_where_the_view_is(file, run):
    """The output ends with the place of the view."""
    alone = run("compress", file, "--window", "8k").out
    assert alone.endswith("\nView written nowhere; --out FILE writes it.\n")
    written = run("compress", file, "--window", "8k", "--out", "view.json").out
    assert written.endswith("\nView written to view.json.\n")


def test_a_view_is_only_its_owners(file, run):
    """A file that a command writes has mode 0600."""
    for command in ("compress", "report"):
        assert run(command, file, "--window", "8k", "--out", f"{command}.json").code == 0
        assert Path(f"{command}.json").stat().st_mode & 0o077 == 0


def test_a_named_session_says_where_it_is_kept(file, run, monkeypatch):
    """`compress` says where it keeps a session."""
    given = ("compress", file, "--window", "8k", "--session", "own")
    assert "Kept as session own.\n" in run(*given).out
    assert [info["id"] for info in run("sessions", "--json").json] == ["own"]
    assert "Nothing was stored" in run("compress", file, "--session", "short").out
    monkeypatch.delenv("PRAISON_COMPRESSOR_STORE")
    assert "Session own is kept nowhere" in run(*given).out
