"""Commands, files, outcomes, the user's words and open work, read off examples by hand."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from praison_compressor.facts import (
    CommandFact,
    Domain,
    ErrorFact,
    Excerpt,
    Facts,
    FileFact,
    Identifier,
    Note,
    Said,
    Todo,
    coverage,
    extract,
    missing,
    render,
)
from praison_compressor.facts.commands import COMMAND_CHARS, command_fact
from praison_compressor.facts.details import details, excerpts_text
from praison_compressor.facts.domain import GENERAL
from praison_compressor.facts.files import Ledger, effects_of
from praison_compressor.facts.lines import Line, Section, fitted
from praison_compressor.facts.model import shifted
from praison_compressor.facts.outcomes import LINE_CHARS, error_lines, first_error, outcome_of
from praison_compressor.facts.reading import Passage, argument_values, passages
from praison_compressor.facts.render import squeeze
from praison_compressor.facts.sections import (
    commands_section,
    decisions_section,
    errors_section,
    files_section,
    now_section,
    still_failing,
    user_section,
)
from praison_compressor.facts.shell import Effect, effects
from praison_compressor.facts.user import sentences, values_of
from praison_compressor.facts.worklist import TodoList, notes
from praison_compressor.messages import ToolCall


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A call with these arguments."""
    return ToolCall("c", name, json.dumps(arguments))


def told(command: str) -> list[tuple[str, str]]:
    """What a command line does: path and action, `path>target` for a move."""
    return [(e.path + (f">{e.target}" if e.target else ""), e.action) for e in effects(command)]


def ran_fact(
    made: ToolCall, result: str, index: int, domain: Domain = GENERAL
) -> CommandFact | None:
    """The fact of a call with that result."""
    return command_fact(made, result, outcome_of(result), index, domain)


# ---------------------------------------------------------------- shell


@pytest.mark.parametrize(
    ("command", "done"),
    [
        ("cat src/a.py", [("src/a.py", "read")]),
        ("cat README", []),
        ("/bin/cat a.txt b.txt", [("a.txt", "read"), ("b.txt", "read")]),
        ("sudo time cat a.txt", [("a.txt", "read")]),
        ("LANG=C cat a.txt", [("a.txt", "read")]),
        ("cat -n a.txt", [("a.txt", "read")]),
        ("cat a.txt | grep x | head", [("a.txt", "read")]),
        ("cd x && cat a.txt; touch b || rm c\nrmdir d", [
            ("a.txt", "read"), ("b", "created"), ("c", "deleted"), ("d", "deleted"),
        ]),
        ("sleep 1 & cat a.txt", [("a.txt", "read")]),
        ("make 2>&1 | tee out.log", [("out.log", "created")]),
        ("make &> all.log", [("all.log", "created")]),
        ("echo x >a.txt", [("a.txt", "created")]),
        ("echo x > a.txt", [("a.txt", "created")]),
        ("echo x >> a.txt", [("a.txt", "edited")]),
        ("echo x 2>>err.txt", [("err.txt", "edited")]),
        ("echo x > /dev/null", []),
        ("> a.txt", [("a.txt", "created")]),
        ("cp a b c/d.txt", [("c/d.txt", "created")]),
        ("cp a", []),
        ("mv a b c", [("a>c", "moved"), ("b>c", "moved")]),
        ("mv a", []),
        ("git mv a b", [("a>b", "moved")]),
        ("git rm a.txt", [("a.txt", "deleted")]),
        ("git restore a.txt", [("a.txt", "edited")]),
        ("git status a.txt", []),
        ("git", []),
        ("rm -rf build '*.o' $TMP", [("build", "deleted")]),
        ("unlink a", [("a", "deleted")]),
        ("rename a b", [("a>b", "moved")]),
        ("black src/a.py", [("src/a.py", "read")]),
        ("grep -n pattern.x src/a.py", [("src/a.py", "read")]),
        ("grep pattern src", []),
        ("grep pattern src/app", []),
        ("grep x ..", []),
        ("cat src/app", [("src/app", "read")]),
        ("sed s/a/b/ src/app", [("src/app", "read")]),
        ("grep \"a|b;c\" a.txt && rm 'x;y'", [("a.txt", "read"), ("x;y", "deleted")]),
        ("rg pattern ./lib..", []),
        ("awk '{print}' data.csv", [("data.csv", "read")]),
        ("sed 's/a;b/c/' a.txt", [("a.txt", "read")]),
        ("sed -i 's/a|b/c/' a.txt", [("a.txt", "edited")]),
        ("sed --in-place s/a/b/ a.txt", [("a.txt", "edited")]),
        ("sed -i -e s/a/b/ a.txt b.txt", [("a.txt", "edited"), ("b.txt", "edited")]),
        ("sed -n 1,5p name", []),
        ("cat 'my;file.txt'", [("my;file.txt", "read")]),
        ("cat a.txt # and b.txt", [("a.txt", "read")]),
        ("cat 'unclosed a.txt", [("a.txt", "read")]),
        ("cat https://x.y/z.txt", []),
        ("cat > a.txt <<'EOF'\nrm b.txt\nEOF\ncat c.txt", [
            ("a.txt", "created"), ("c.txt", "read"),
        ]),
        ("head -n 5 a.txt", [("a.txt", "read")]),
        ("", []),
    ],
)  # fmt: skip
def test_what_a_command_line_does_to_files(command: str, done: list[tuple[str, str]]) -> None:
    """In order; pipes, chains, redirections, quotes and here-documents are read as a shell does."""
    assert told(command) == done


def test_an_effect_names_the_word_that_did_it() -> None:
    """The program, git with its command, sed with its flag, a redirection alone by its mark."""
    lines = {"sed -i s/a/b/ x.py": "sed -i", "sed s/a/b/ x.py": "sed", "git rm x.py": "git rm",
             "> x.py": ">", "echo 1 > x.py": "echo", "/usr/bin/tail x.py": "tail",
             "rg q x.py": "rg", "mv x.py y": "mv", "cp a x.py": "cp"}  # fmt: skip
    assert {line: effects(line)[0].via for line in lines} == lines


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("made", "done"),
    [
        (call("view_file", path="a.py"), [("a.py", "read", "")]),
        (call("open", paths=["a.py", {"file": "b.py"}, 5]), [
            ("a.py", "read", ""), ("b.py", "read", ""),
        ]),
        (call("write_file", FILE_PATH="a.py"), [("a.py", "created", "")]),
        (call("write_file", path="file:///srv/a.py"), [("/srv/a.py", "created", "")]),
        (call("write_file", path=" a.py "), [("a.py", "created", "")]),
        (call("write_file", path="a\nb"), []),
        (call("write_file", path="x" * 300), [("x" * 300, "created", "")]),
        (call("write_file", path="x" * 301), []),
        (call("write_file", path="  "), []),
        (call("write_file", other="a.py"), []),
        (call("append_to", file="a.py"), [("a.py", "edited", "")]),
        (call("remove", file="a.py"), [("a.py", "deleted", "")]),
        (call("rm", file="a.py"), [("a.py", "deleted", "")]),
        (call("removeFile", file="a.py"), [("a.py", "deleted", "")]),
        (call("move", file="a.py"), [("a.py", "moved", "")]),
        (call("format", file="a.py"), []),
        (call("mv", source="a.py", to="b.py"), [("a.py", "moved", "b.py")]),
        (call("rename_file", old_path="a.py", new_path="b.py"), [("a.py", "moved", "b.py")]),
        (call("editor", command="unknown_verb", path="a.py"), [("a.py", "edited", "")]),
        (call("edit", command="two words", path="a.py"), [("a.py", "edited", "")]),
        (call("editor", path="a.py", old_text="x"), [("a.py", "edited", "")]),
        (call("editor", path="a.py", new_text="x"), [("a.py", "edited", "")]),
        (call("Editor", path="a.py"), [("a.py", "read", "")]),
        (call("bash", command="rm a.py"), [("a.py", "deleted", "")]),
        (call("bash", commands=["rm a.py", 5, "touch b.py"]), [
            ("a.py", "deleted", ""), ("b.py", "created", ""),
        ]),
        (call("chat", command="rm a.py"), []),
        (ToolCall("c", "bash", "rm a.py"), [("a.py", "deleted", "")]),
        (ToolCall("c", "bash", "[1]"), []),
        (call("apply_patch", patch="--- a/old.py\n+++ /dev/null\n"), [("old.py", "deleted", "")]),
        (call("apply_patch", diff="--- /dev/null\n+++ b/new.py\n"), [("new.py", "created", "")]),
        (call("x", input="*** Update File: a.py\n*** Move to: b.py"), [
            ("a.py", "edited", ""), ("a.py", "moved", "b.py"),
        ]),
        (ToolCall("c", "apply_patch", "*** Add File: a.py \n+x"), [("a.py", "created", "")]),
    ],
    ids=lambda value: value.name if isinstance(value, ToolCall) else "",
)  # fmt: skip
def test_what_a_call_does_to_files(made: ToolCall, done: list[tuple[str, str, str]]) -> None:
    """By the verb in its name, its `command`, its patch, or the command line it runs."""
    assert [(e.path, e.action, e.target) for e in effects_of(made)] == done


def test_a_domains_rule_counts_before_a_name() -> None:
    """Its action, its argument; a command of its own is read as one."""
    domain = Domain(
        tools={"fetch_doc": "read:doc", "sh": "command:line", "lift": "moved:what", "ask": "search",
               "store": "created"}
    )  # fmt: skip
    assert effects_of(call("fetch_doc", doc="a.py", path="b.py"), domain) == [
        Effect("a.py", "read", "fetch_doc")
    ]
    assert [e.path for e in effects_of(call("sh", line="rm a.py", command="rm b"), domain)] == [
        "a.py"
    ]
    assert effects_of(call("lift", what="a.py", to="b.py"), domain) == [
        Effect("a.py", "moved", "lift", "b.py")
    ]
    assert effects_of(call("ask", path="a.py"), domain) == []
    assert [e.action for e in effects_of(call("store", path="a.py"), domain)] == ["created"]
    assert effects_of(ToolCall("c", "store", "text"), domain) == []
    assert domain.rule("other") is None


def trail(*steps: tuple[str, str, bool]) -> dict[str, tuple[str, dict[str, int], bool, int]]:
    """The files after these (path, action, worked) in order."""
    ledger = Ledger()
    for index, (path, action, ok) in enumerate(steps):
        path, _, target = path.partition(">")
        ledger.add(Effect(path, action, "tool", target), index, ok)
    return {f.path: (f.action, dict(f.counts), f.ok, f.index) for f in ledger.facts()}


def test_the_last_thing_that_worked_counts() -> None:
    """What failed counts only where nothing else is known; reading does not undo a change."""
    assert trail(("a", "read", True), ("a", "edited", True)) == {
        "a": ("edited", {"read": 1, "edited": 1}, True, 1)
    }
    assert trail(("a", "edited", True), ("a", "read", True)) == {
        "a": ("edited", {"edited": 1, "read": 1}, True, 0)
    }
    assert trail(("a", "deleted", True), ("a", "read", True))["a"][0] == "read"
    assert trail(("a", "edited", False)) == {"a": ("edited", {"edited": 0}, False, 0)}
    assert trail(("a", "read", True), ("a", "edited", False)) == {
        "a": ("read", {"read": 1}, True, 0)
    }
    assert trail(("a", "edited", False), ("a", "read", True))["a"][0] == "read"


def test_a_file_that_is_written_again_is_edited_unless_it_was_deleted() -> None:
    """Or unless its first writing failed."""
    assert trail(("a", "read", True), ("a", "created", True))["a"][0] == "edited"
    assert trail(("a", "deleted", True), ("a", "created", True))["a"][0] == "created"
    assert trail(("a", "created", False), ("a", "created", True))["a"][0] == "created"


def test_a_moved_file_is_where_it_went() -> None:
    """By its own name in a folder; a move that failed went nowhere."""
    assert [(p, f[0]) for p, f in trail(("x/a>y/b", "moved", True)).items()] == [
        ("x/a", "moved"),
        ("y/b", "created"),
    ]
    assert list(trail(("x/a>y/", "moved", True))) == ["x/a", "y/a"]
    assert list(trail(("x/a>y", "moved", False))) == ["x/a"]
    assert trail(("y", "read", True), ("x>y", "moved", True))["y"][1] == {"created": 1}


def test_the_newest_touched_file_is_last() -> None:
    """So that the newest lines survive a small room."""
    assert list(trail(("a", "read", True), ("b", "read", True), ("a", "read", True))) == ["b", "a"]


# ---------------------------------------------------------------- outcomes


@pytest.mark.parametrize(
    ("result", "status", "detail"),
    [
        ("", "unknown", ""),
        ("done\nreal 0.5s\n", "ok", "done"),
        ("all good\nwall time 3 s\nduration: 4", "ok", "all good"),
        ("exit code 0\nok", "ok", "ok"),
        ("exit code: 0", "ok", "exit code: 0"),
        ("Exited with code 2\nsomething broke: error", "failed", "something broke: error"),
        ("returncode=1\nnothing said", "failed", "returncode=1"),
        ("x\n" * 300 + "process exited with status 137", "failed", None),
        ("Error: no such file", "failed", "Error: no such file"),
        ("  ValueError: bad", "failed", "ValueError: bad"),
        ("all is well, no error", "ok", "all is well, no error"),
        ("== 3 failed, 2 passed ==\nend", "failed", "== 3 failed, 2 passed =="),
        ("0 failed, 2 passed in 1s\nbye", "ok", "0 failed, 2 passed in 1s"),
        ("ok  pkg/x 0.1s\nlast", "ok", "ok pkg/x 0.1s"),
        ("--- FAIL: TestX\nlast", "failed", "--- FAIL: TestX"),
        ("exit code 0\n1 failed", "ok", "1 failed"),
        ("permission denied", "failed", "permission denied"),
        ("a" * 300, "ok", "a" * (LINE_CHARS - 1) + "…"),
        ("a" * 200, "ok", "a" * 200),
    ],
)
def test_how_a_result_says_that_it_ended(result: str, status: str, detail: str | None) -> None:
    """By its exit code, by failing tests, by how it begins; the line that shows it."""
    found = outcome_of(result)
    assert found.status == status
    assert detail in (None, found.detail)


def test_only_the_edges_of_a_long_result_are_read() -> None:
    """What a file in the middle says of errors is no outcome."""
    middle = "x " * 2_100 + "\n5 failed\n" + "y " * 2_100
    assert outcome_of(middle).status == "ok"
    assert outcome_of("5 failed\n" + middle).status == "failed"
    assert outcome_of(middle + "\n5 failed").status == "failed"


def test_lines_that_tell_of_errors() -> None:
    """The first one, or the first line; two at most, each once."""
    text = "start\n\nfatal: a\nerror b\nfatal: a\nerror c"
    assert first_error(text) == "fatal: a"
    assert first_error("\nplain\nmore") == "plain"
    assert first_error("") == ""
    assert error_lines(text) == ["fatal: a", "error b"]
    assert error_lines(text, 5) == ["fatal: a", "error b", "error c"]
    assert error_lines("x" * 401 + " error") == []


# ---------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("made", "result", "fact"),
    [
        (call("bash", command="make  all"), "exit code 0\ndone",
         CommandFact("make all", "ok", "done", 3)),
        (call("run", commands=["a", "b"]), "x", CommandFact("a && b", "ok", "x", 3)),
        (call("bash", other="x"), "x", None),
        (call("python", script="print(1)"), "error: x",
         CommandFact("print(1)", "failed", "error: x", 3)),
        (call("web_fetch", url="https://a.b/c"), "page\n\nmore\nend",
         CommandFact("web_fetch https://a.b/c", "ok", "page (+2 lines)", 3, kind="fetch")),
        (call("web_fetch", q="x"), "page", None),
        (call("grep", pattern="x", limit=5), "one", CommandFact("grep x 5", "ok", "one", 3,
                                                              kind="search")),
        (call("search_code", q="x"), " \n", CommandFact("search_code x", "ok", "nothing found", 3,
                                                       kind="search")),
        (call("edit", path="x"), "ok", None),
        (ToolCall("c", "grep", "[1]"), "ok", None),
        (call("bash", command="x" * 241), "y",
         CommandFact("x" * (COMMAND_CHARS - 1) + "…", "ok", "y", 3)),
        (call("bash", command="x" * 240), "y", CommandFact("x" * 240, "ok", "y", 3)),
        (call("find_it", q="x"), "z" * 130, CommandFact("find_it x", "ok", "z" * 120, 3,
                                                       kind="search")),
    ],
    ids=lambda value: value.name if isinstance(value, ToolCall) else "",
)  # fmt: skip
def test_what_a_call_ran_and_what_came_of_it(
    made: ToolCall, result: str, fact: CommandFact | None
) -> None:
    """Commands by their line, searches and fetches by what they were asked."""
    assert ran_fact(made, result, 3) == fact


def test_a_domains_tools_are_commands_and_searches_too() -> None:
    """With the argument that its rule names; rules about files make no command."""
    domain = Domain(tools={"kb": "search:question", "sh": "command", "save": "created"})
    found = ran_fact(call("kb", question="why", limit=3), "because", 0, domain)
    assert found == CommandFact("kb why", "ok", "because", 0, kind="search")
    assert ran_fact(call("kb", limit=3), "x", 0, domain).text == "kb"  # type: ignore[union-attr]
    ran = ran_fact(call("sh", cmd="ls"), "x", 0, domain)
    assert ran == CommandFact("ls", "ok", "x", 0)
    spoken = ran_fact(ToolCall("c", "kb", '"why"'), "x", 0, domain)
    assert spoken is not None
    assert spoken.text == "kb why"
    assert ran_fact(call("save", path="x"), "x", 0, domain) is None


# ---------------------------------------------------------------- reading


def test_who_said_what() -> None:
    """Hosts speak in the user's role too; a name is another agent's; results know their call."""
    made = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"p": "x"}'}}
    messages = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "task"},
        {"role": "user", "content": "  <system-reminder>now"},
        {"role": "user", "content": "hello", "name": "worker"},
        {"role": "user", "content": "NOTE: mine"},
        {"role": "assistant", "content": "I look.", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c", "content": '"a\\nb"'},
        {"role": "function", "name": "ls", "content": "again"},
        {"role": "user", "content": [{"type": "tool_result", "content": "old"}]},
        {"role": "assistant", "content": " "},
        {"role": "tool", "tool_call_id": "gone", "content": "orphan"},
    ]
    found = [(p.at, p.source, p.text, p.lead) for p in passages(messages, ("NOTE:",))]
    assert found == [
        (0, "host", "rules", ""),
        (1, "user", "task", ""),
        (2, "host", "  <system-reminder>now", ""),
        (3, "host", "hello", ""),
        (4, "host", "NOTE: mine", ""),
        (5, "assistant", "I look.", ""),
        (5, "call", "ls x", "I look."),
        (6, "result", "a\nb", ""),
        (7, "result", "again", ""),
        (8, "result", "old", ""),
        (10, "result", "orphan", ""),
    ]
    calls = [p.call.name if p.call else None for p in passages(messages) if p.source == "result"]
    assert calls == ["ls", "ls", None, None]


def test_a_call_is_led_by_the_last_words_before_it() -> None:
    """Whole words, eighty characters at most; the second call by the first."""
    made = [
        {"id": i, "type": "function", "function": {"name": f"t{i}", "arguments": "{}"}}
        for i in "ab"
    ]
    text = "first " + "word " * 30 + "last"
    message = {"role": "assistant", "content": text, "tool_calls": made}
    leads = [p.lead for p in passages([message]) if p.source == "call"]
    assert leads[1] == "ta"
    assert leads[0].endswith("word last")
    assert 70 < len(leads[0]) <= 80
    assert leads[0].startswith("word")


def test_the_values_of_arguments_are_said_in_order() -> None:
    """Strings and numbers at any depth; where to look and for how long is left out."""
    given = {
        "path": "a",
        "offset": 5,
        "deep": [{"n": 1.5, "ok": True}, ("x",)],
        "limit": 3,
        "z": None,
    }
    assert list(argument_values(given)) == ["a", "1.5", "x"]


# ---------------------------------------------------------------- the user


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
    assert values_of("v1.2 and 50% and camelCase") == {
        "v1.2": "number",
        "50%": "number",
        "camelCase": "name",
    }


# ---------------------------------------------------------------- open work


def test_decisions_and_open_work_are_sentences_that_say_so() -> None:
    """Neither too short nor too long to be one; a decision first."""
    text = (
        "I decided to use SQLite. Next I fix the parser. Done. We chose it. "
        "The build needs to pass because CI is red. Nothing here."
    )
    found = [(kind, note.text, note.index) for kind, note in notes(Passage(4, "assistant", text))]
    assert found == [
        ("decision", "I decided to use SQLite.", 4),
        ("open", "Next I fix the parser.", 4),
        ("decision", "We chose it.", 4),
        ("decision", "The build needs to pass because CI is red.", 4),
    ]
    twelve, eleven = "we chose it.", "we chose i."
    assert len(list(notes(Passage(0, "assistant", twelve)))) == 1
    assert list(notes(Passage(0, "assistant", eleven))) == []
    limit = "because " + "x" * 292
    assert len(list(notes(Passage(0, "assistant", limit)))) == 1
    assert list(notes(Passage(0, "assistant", limit + "x"))) == []


def listed(*seen: Any) -> list[tuple[str, str, int]]:
    """The todo list after these calls and texts."""
    todos = TodoList()
    for index, one in enumerate(seen):
        if isinstance(one, str):
            todos.see_text(one, index)
        else:
            todos.see(one, index)
    return [(todo.text, todo.status, todo.index) for todo in todos.todos()]


def test_a_todo_list_is_known_in_every_form() -> None:
    """Whole, item by item, or as check boxes; the newest list counts."""
    whole = call("x", todos=[{"content": "a", "status": "done"}, {"title": " b  c "}])
    assert listed(whole) == [("a", "done", 0), ("b c", "pending", 0)]
    assert listed(whole, call("x", plan=[{"step": "z"}])) == [("z", "pending", 1)]
    assert listed(whole, call("x", items=[{"no": "title"}]))[0] == ("a", "done", 0)
    assert listed(whole, call("x", todos=[]))[0] == ("a", "done", 0)
    assert listed(ToolCall("c", "todo", "[]")) == []
    boxes = "- [ ] first thing\n* [x] second thing\n- [~] third thing\n- [-] fourth\n- [X] fifth"
    assert [status for _, status, _ in listed(boxes)] == [
        "pending", "completed", "in_progress", "in_progress", "completed",
    ]  # fmt: skip
    assert listed("- [ ] only one") == []
    assert listed(call("update_plan", plan=boxes))[0] == ("first thing", "pending", 0)
    assert listed(call("update_plan", plan="no boxes")) == []


def test_single_items_are_made_and_changed() -> None:
    """By an id where there is one; a tool that only reads makes none."""
    made = call("TaskCreate", subject="a")
    assert listed(made, call("TaskCreate", subject="b")) == [
        ("a", "pending", 0),
        ("b", "pending", 1),
    ]
    assert listed(made, call("TaskUpdate", taskId="1", status="done")) == [("a", "done", 1)]
    assert listed(made, call("TaskUpdate", id=1, title="new")) == [("new", "pending", 1)]
    assert listed(made, call("TaskUpdate", task_id="7", status="done")) == [("a", "pending", 0)]
    assert listed(call("add_task", id="k", title="t"), call("task_set", id="k", status="x")) == [
        ("t", "x", 1)
    ]
    assert listed(call("TaskGet", title="a")) == []
    assert listed(call("create_file", title="a")) == []
    assert listed(call("new_todo", text="x" * 400))[0][0] == "x" * 300


# ---------------------------------------------------------------- errors


def test_an_error_is_counted_and_knows_what_followed() -> None:
    """The assistant's next words; the newest place counts."""

    def ran(id: str, result: str, text: str | None = None) -> list[dict[str, Any]]:
        function = {"name": "bash", "arguments": '{"command": "make"}'}
        made = [{"id": id, "type": "function", "function": function}]
        return [
            {"role": "assistant", "content": text, "tool_calls": made},
            {"role": "tool", "tool_call_id": id, "content": result},
        ]

    facts = extract([*ran("a", "error: x"), *ran("b", "error: x\nerror: y", "I try " + "z" * 300)])
    assert [(e.text, e.times, e.index, e.followed_by) for e in facts.errors] == [
        ("error: x", 2, 3, ""),
        ("error: y", 1, 3, ""),
    ]
    assert [(c.text, c.runs, c.outcome) for c in facts.commands] == [("make", 2, "failed")]
    ended = extract([*ran("a", "error: x"), {"role": "assistant", "content": "I try " + "z" * 300}])
    assert ended.errors[0].followed_by == ("I try " + "z" * 300)[:200]
    assert extract(ran("a", "all fine, no error")).errors == ()


# ---------------------------------------------------------------- sections


def text_of(section: Section) -> list[str]:
    """The lines, most valuable first."""
    return [line.text for line in section.lines]


def test_the_users_words_are_ranked() -> None:
    """Rules and what was replaced first, then what was typed, newest first, then pastes."""
    facts = Facts(
        user=(
            Said(0, "old request"),
            Said(1, "always lint", standing=True),
            Said(2, "use 8080", superseded_by="use 9090", superseded_at=4, old_values=("8080",)),
            Said(3, "pasted", pasted=1),
            Said(3, "deep paste", pasted=2),
            Said(4, "use 9090"),
            Said(5, "old request"),
            Said(6, "hidden words"),
        )
    )
    assert text_of(user_section(facts, "some hidden words here")) == [
        "use 8080 (superseded later: 8080 no longer holds)",
        "always lint",
        "old request",
        "use 9090",
        "pasted",
        "deep paste",
    ]
    orders = [line.order for line in user_section(facts).lines]
    assert sorted(orders) == [1, 2, 3, 4, 5, 6, 7]


def test_how_things_stand_comes_first() -> None:
    """What is being done, what is next, what still fails, the newest words, what is done."""
    facts = Facts(
        todos=(Todo("a", "completed", 1), Todo("b", "in_progress", 1), Todo("c", "pending", 1),
               Todo("d", "cancelled", 1), Todo("e", "active", 1)),
        commands=(CommandFact("make", "failed", "boom", 2),),
        last_words=(Note("I looked.", 5),),
        open_work=(Note("old note", 3), Note("new note", 4)),
    )  # fmt: skip
    section = now_section(facts)
    assert text_of(section) == [
        "b", "e", "c", "make: boom [2]", "I looked. [5]", "new note [4]", "a", "d",
    ]  # fmt: skip
    assert fitted(section, 1_000, len) == (
        "## Now\n- doing: b; e\n- next: c\n- still fails: make: boom [2]\n"
        "- said: I looked. [5]\n- said: new note [4]\n- done: a; d\n"
    )
    same = Facts(last_words=(Note("x", 1),), open_work=(Note("x", 1),))
    assert text_of(now_section(same)) == ["x [1]"]


def test_a_command_still_fails_until_a_like_one_worked() -> None:
    """By the program it runs in the end; the two newest; searches and silent ones are none."""

    def failing(*commands: tuple[str, str]) -> list[str]:
        made = tuple(CommandFact(text, how, "why", n) for n, (text, how) in enumerate(commands))
        return [item.text for item in still_failing(Facts(commands=made))]

    assert failing(("make a", "failed"), ("make b", "ok")) == []
    assert failing(("make b", "ok"), ("make a", "failed")) == ["make a"]
    assert failing(("make a", "failed"), ("make b", "failed")) == ["make b"]
    assert failing(("a", "failed"), ("b", "failed"), ("c", "failed")) == ["c", "b"]
    assert failing(("cd x && CI=1 make a | tail", "failed"), ("make", "ok")) == []
    assert failing(("make a", "failed"), ("make | grep x", "ok")) == []
    assert failing(("A=1", "failed")) == ["A=1"]
    silent = Facts(commands=(CommandFact("a", "failed", "", 0),
                             CommandFact("b", "failed", "x", 1, kind="search")))  # fmt: skip
    assert still_failing(silent) == []


def test_older_words_with_a_value_that_was_taken_back_are_not_told() -> None:
    """Decisions, notes and clauses from before the correction; the same words after it are."""
    said = Said(0, "use 8080", superseded_by="use 9090", superseded_at=4, old_values=("8080",))
    facts = Facts(
        user=(said,),
        decisions=(Note("we chose 8080", 3), Note("we keep 8080", 4), Note("we chose 18080", 2)),
        last_words=(Note("port 8080 it is", 3),),
        identifiers=(Identifier("order_id", "symbol", named=3),),
        excerpts=(Excerpt(3, "assistant", "order_id at 8080", ("order_id",)),),
        messages=9,
    )
    assert text_of(decisions_section(facts)) == ["[2] we chose 18080", "[4] we keep 8080"]
    assert text_of(now_section(facts)) == []
    assert details(facts, 200, len) == ""
    kept = replace(facts, user=())
    assert len(text_of(decisions_section(kept))) == 3
    assert "order_id" in details(kept, 200, len)


def test_files_commands_errors_and_decisions_are_lines() -> None:
    """The last thing done and how often, outcomes, what followed; newest first."""
    facts = Facts(
        files=(
            FileFact("src/x/a.py", "read", "cat", 1, {"read": 3}),
            FileFact("b.py", "edited", "Edit", 2, {"edited": 2}),
            FileFact("c.py", "moved", "mv", 3, {"moved": 1}, target="d.py"),
            FileFact("e.py", "created", "tee", 4, {}, ok=False),
            FileFact("f.py", "listed", "x", 9, {"listed": 1}),
            FileFact("g.py", "read", "cat", 0, {"read": 1}),
        ),
        commands=(
            CommandFact("make", "ok", "done", 1),
            CommandFact("grep x", "ok", "found", 2, kind="search"),
            CommandFact("pytest", "failed", "1 failed", 3),
        ),
        errors=(ErrorFact("e1", 1), ErrorFact("e2", 2, "I mend it")),
        decisions=(Note("d1", 1), Note("d2", 2)),
    )
    assert fitted(files_section(facts), 1_000, len) == (
        "## Files\n- listed (x): f.py\n- created (tee), failed: e.py\n- moved (mv): c.py to d.py\n"
        "- edited (Edit): b.py ×2\n- read (cat): x/a.py ×3, g.py\n"
    )
    assert text_of(commands_section(facts)) == [
        "[3] pytest -> failed: 1 failed",
        "[1] make -> ok: done",
    ]
    assert text_of(errors_section(facts)) == ["[2] e2 (then: I mend it)", "[1] e1"]
    assert text_of(decisions_section(facts)) == ["[2] d2", "[1] d1"]


def test_a_section_takes_the_most_valuable_lines_that_fit_and_prints_them_in_order() -> None:
    """To the token; lines of one group share a bullet."""
    lines = (Line(2, "cc", "g"), Line(0, "a"), Line(1, "bbbb", "g"))
    labelled = Section("T", (Line(0, "a", "g", "L: "), Line(1, "b", "g", "L: ")), ", ")
    assert fitted(labelled, len("## T\n- L: a, b\n") + 1, len) == "## T\n- L: a, b\n"
    assert fitted(labelled, len("## T\n- L: a, b\n") - 1, len) == "## T\n- L: a\n"
    apart = Section("T", (Line(0, "a", "g"), Line(1, "b", "h"), Line(2, "c", "g")))
    assert fitted(apart, 100, len) == "## T\n- a\n- b\n- c\n"
    alone = Section("T", (Line(0, "a"), Line(1, "b")))
    assert fitted(alone, 100, len) == "## T\n- a\n- b\n"
    section = Section("T", lines)
    everything = "## T\n- a\n- bbbb\ncc\n"
    assert fitted(section, len(everything) + 1, len) == everything
    assert fitted(section, len(everything), len) == "## T\n- a\n- cc\n"
    assert fitted(section, len("## T\n") + 1 + len("- cc\n"), len) == "## T\n- cc\n"
    assert fitted(section, len("## T\n") + len("- a\n"), len) == ""
    assert fitted(Section("T", ()), 1_000, len) == ""


def test_excerpts_of_one_message_stand_together() -> None:
    """Each marked by who said it."""
    chosen = [
        Excerpt(1, "call", "one"), Excerpt(1, "call", "two"), Excerpt(1, "result", "three"),
        Excerpt(2, "assistant", "four"), Excerpt(3, "user", "five"), Excerpt(4, "host", "six"),
    ]  # fmt: skip
    assert excerpts_text(chosen) == "> one … two\n= three\nfour\nuser: five\nhost: six"
    assert squeeze("a  \n\n\nb\t\n c ") == "a\nb\n c"


def test_details_bind_names_that_stand_nowhere_else() -> None:
    """The user's own clauses are in their section; below twenty tokens there are none."""
    facts = extract(
        [
            {"role": "user", "content": "Mend user_part."},
            {"role": "assistant", "content": "The parser of order_file breaks the lookup."},
            {"role": "assistant", "content": "The writer of other_file breaks the lookup."},
        ]
    )

    def count(text: str) -> int:
        return len(text.split())

    whole = details(facts, 60, count)
    assert whole.startswith("## Details (> call, = result)\n")
    assert "order_file" in whole
    assert "other_file" in whole
    assert "user_part" not in whole
    assert "order_file" not in details(facts, 60, count, covered={"order_file"})
    assert details(facts, 20, count) == ""
    assert count(details(facts, 33, count)) <= 33


def test_nothing_is_rendered_below_twenty_tokens() -> None:
    """A heading and nothing under it would say nothing."""
    facts = Facts(user=(Said(0, "hi"),))
    assert render(facts, budget_tokens=19, count=len) == ""
    assert "hi" in render(facts, budget_tokens=60, count=len)


# ---------------------------------------------------------------- audit and merging


def test_what_a_text_holds_is_counted_by_kind() -> None:
    """And what it lacks is what is missing, record for record."""
    facts = Facts(
        messages=10,
        user=(Said(0, "use port 9090"), Said(1, "never push")),
        files=(FileFact("src/app/a.py", "read", "cat", 1), FileFact("b.py", "read", "cat", 1)),
        commands=(CommandFact("make all", "ok", "", 1),),
        errors=(ErrorFact("e" * 90, 1),),
        decisions=(Note("we chose it", 1),),
        open_work=(Note("next is b", 1),),
        todos=(Todo("fix it", "pending", 1),),
        identifiers=(Identifier("order_id", "symbol", named=5),),
        excerpts=(Excerpt(1, "call", "see order_id", ("order_id",)),),
    )
    text = f"use  port\n9090, app/a.py, make all, {'e' * 80}, order_id"
    lacking = missing(facts, text)
    assert [item.text for item in lacking.user] == ["never push"]
    assert [item.path for item in lacking.files] == ["b.py"]
    assert (lacking.commands, lacking.errors, lacking.identifiers, lacking.excerpts) == (
        (), (), (), (),
    )  # fmt: skip
    assert (len(lacking.decisions), len(lacking.open_work), len(lacking.todos)) == (1, 1, 1)
    found = coverage(facts, text)
    assert found.by_kind == {
        "user": (1, 2), "files": (1, 2), "commands": (1, 1), "errors": (1, 1),
        "decisions": (0, 1), "open_work": (0, 1), "todos": (0, 1), "identifiers": (1, 1),
    }  # fmt: skip
    assert (found.covered, found.total, found.share) == (5, 10, 0.5)
    assert coverage(Facts(), "x").share == 1.0
    short_names = Facts(files=(FileFact("a.b", "read", "x", 1), FileFact("ab.c", "read", "x", 1)))
    assert [item.path for item in missing(short_names, "xa.bx xab.cx").files] == ["a.b"]


def test_facts_of_two_segments_become_one() -> None:
    """Places move up by what came before, counts add, the last word wins."""
    one = Facts(
        messages=4,
        user=(Said(0, "Use port 8080."),),
        files=(FileFact("a", "edited", "x", 1, {"edited": 1}),
               FileFact("b", "created", "x", 1, {"created": 1}),
               FileFact("c", "deleted", "x", 1, {"deleted": 1})),
        commands=(CommandFact("make", "failed", "no", 1, runs=2),),
        errors=(ErrorFact("e", 1, "", 2),),
        decisions=(Note("d", 1),),
        open_work=(Note("o", 1),),
        todos=(Todo("t", "pending", 1),),
        identifiers=(Identifier("id_1", "symbol", 1, 2, 3, 4, 5, first=1, last=2, spread=3,
                                crowd=4),),
        excerpts=(Excerpt(1, "call", "see id_1", ("id_1",)),),
        patterns={"k": "x"},
    )  # fmt: skip
    two = Facts(
        messages=3,
        user=(Said(1, "No, use port 9090."),),
        files=(FileFact("a", "read", "y", 0, {"read": 2}),
               FileFact("b", "created", "y", 0, {"created": 1}),
               FileFact("c", "created", "y", 0, {"created": 1}),
               FileFact("d", "read", "y", 0, {"read": 1}),
               FileFact("e", "edited", "y", 0, {}, ok=False)),
        commands=(CommandFact("make", "ok", "yes", 2), CommandFact("ls", "ok", "", 2)),
        errors=(ErrorFact("e", 2, "mended"), ErrorFact("f", 2)),
        decisions=(Note("d", 2),),
        open_work=(Note("p", 2),),
        identifiers=(Identifier("id_1", "symbol", 10, 20, 30, 40, 50, first=0, last=1, spread=5,
                                crowd=2), Identifier("id_2", "id", first=1, last=2)),
        excerpts=(Excerpt(2, "call", "see id_1", ("id_1",)), Excerpt(2, "user", "x", ())),
        patterns={"m": "y"},
    )  # fmt: skip
    both = one.merge(two)
    assert both.messages == 7
    assert (both.user[0].superseded_at, both.user[1].index) == (5, 5)
    assert [(f.path, f.action, dict(f.counts), f.index) for f in both.files] == [
        ("a", "edited", {"edited": 1, "read": 2}, 1),
        ("b", "edited", {"created": 2}, 4),
        ("c", "created", {"deleted": 1, "created": 1}, 4),
        ("d", "read", {"read": 1}, 4),
        ("e", "edited", {}, 4),
    ]
    assert [(c.text, c.outcome, c.runs, c.index) for c in both.commands] == [
        ("make", "ok", 3, 6), ("ls", "ok", 1, 6),
    ]  # fmt: skip
    assert [(e.text, e.times, e.index) for e in both.errors] == [("e", 3, 6), ("f", 1, 6)]
    assert ([n.index for n in both.decisions], [n.index for n in both.open_work]) == ([6], [1, 6])
    assert both.todos == one.todos
    assert both.identifiers[0] == Identifier(
        "id_1", "symbol", 11, 22, 33, 44, 55, first=1, last=5, spread=8, crowd=2
    )
    assert (both.identifiers[1].first, both.identifiers[1].last) == (5, 6)
    assert [(e.index, e.source) for e in both.excerpts] == [(6, "call"), (6, "user")]
    assert both.patterns == {"k": "x", "m": "y"}
    assert both.merge(Facts(todos=(Todo("n", "done", 0),))).todos == (Todo("n", "done", 7),)


def test_a_record_stands_further_on() -> None:
    """All its places move, and nothing else."""
    said = Said(1, "x", superseded_by="y", superseded_at=3)
    assert shifted(said, 10) == Said(11, "x", superseded_by="y", superseded_at=13)
    assert shifted(Said(1, "x"), 10) == Said(11, "x")
    assert shifted(said, 0) is said


def test_facts_come_back_whole_from_json() -> None:
    """Unknown keys of a later version are left out; what is missing is empty."""
    facts = extract(
        [
            {"role": "user", "content": "Use port 8080. Always lint."},
            {"role": "user", "content": "No, use port 9090 in order_file."},
        ]
    )
    written = json.loads(json.dumps(facts.to_json()))
    written["user"][0]["later_key"] = 1
    written["later_kind"] = []
    assert Facts.from_json(written) == facts
    assert Facts.from_json({}) == Facts()
    assert not Facts(messages=3, patterns={"a": "b"})
    assert Facts(todos=(Todo("t", "pending", 1),))


def test_records_are_values() -> None:
    """None of them can be changed, and their defaults say nothing happened."""
    records = (
        Said(0, "x"), FileFact("a", "read", "x", 0), CommandFact("a", "ok", "", 0),
        ErrorFact("e", 0), Note("n", 0), Todo("t", "s", 0), Identifier("i", "id"),
        Excerpt(0, "user", "x"), Facts(), coverage(Facts(), ""), Domain(),
    )  # fmt: skip
    for record in records:
        with pytest.raises(FrozenInstanceError):
            record.index = 1  # type: ignore[union-attr,misc]
    said, file, command, error, *_ = records
    assert (said.standing, said.pasted, said.old_values) == (False, 0, ())  # type: ignore[union-attr]
    assert (file.target, file.ok) == ("", True)  # type: ignore[union-attr]
    assert (command.runs, command.kind) == (1, "command")  # type: ignore[union-attr]
    assert (error.followed_by, error.times) == ("", 1)  # type: ignore[union-attr]


# ---------------------------------------------------------------- shares and borders


def many(number: int) -> Facts:
    """Facts of every kind, more than any small room takes."""
    return Facts(
        messages=number,
        user=tuple(Said(n, f"request number {n} of the user") for n in range(number)),
        files=tuple(FileFact(f"f{n}.py", "read", "cat", n) for n in range(number)),
        commands=tuple(CommandFact(f"make {n}", "ok", "done", n) for n in range(number)),
        errors=tuple(ErrorFact(f"error {n}", n) for n in range(number)),
        decisions=tuple(Note(f"we chose {n}", n) for n in range(number)),
        todos=tuple(Todo(f"thing {n}", "pending", n) for n in range(number)),
        identifiers=tuple(Identifier(f"name_{n}", "symbol", named=3) for n in range(number)),
        excerpts=tuple(
            Excerpt(n, "call", f"look at name_{n} closely", (f"name_{n}",)) for n in range(number)
        ),
    )


def parts(text: str) -> dict[str, int]:
    """Characters of each section, by the first word of its heading."""
    sections = text.split("## ")[1:]
    return {part.split()[0]: len(part) + 3 for part in sections}


def test_each_kind_of_fact_has_its_share_of_the_room() -> None:
    """Seven tenths for the user's words; small shares of the rest; what is left is for details."""
    room = 20_000
    taken = parts(render(many(1_000), budget_tokens=room, count=len))
    assert 0.05 * room < taken["Now"] <= 0.07 * room
    after = room - taken["Now"]
    assert 0.68 * after < taken["The"] <= 0.7 * after
    rest = after - taken["The"]
    shares = (("Decisions", 0.03), ("Files", 0.06), ("Errors", 0.03), ("Commands", 0.03))
    for title, share in shares:
        assert (share - 0.01) * rest < taken[title] <= 1.15 * share * rest
    assert taken["Details"] > 0.7 * rest
    assert list(taken) == ["Now", "The", "Decisions", "Files", "Errors", "Commands", "Details"]


def test_what_a_person_looks_for_first_has_a_line_in_a_small_room_too() -> None:
    """Forty tokens a section from two hundred on; beside prose only the share counts."""
    facts = replace(many(50), user=(), todos=())
    assert "Files" in parts(render(facts, budget_tokens=200, count=len))
    assert "Files" not in parts(render(facts, budget_tokens=199, count=len))
    assert "Files" not in parts(render(facts, budget_tokens=200, count=len, beside_prose=True))


def test_a_room_of_twenty_tokens_is_one() -> None:
    """The first that holds a heading and a line."""
    facts = Facts(user=(Said(0, "hi"),))
    words = lambda text: len(text.split())  # noqa: E731
    assert "hi" in render(facts, budget_tokens=20, count=words)


def test_names_in_the_users_section_need_no_details() -> None:
    """Nor what is visible anyway; what is only listed is worth half."""
    facts = extract(
        [
            {"role": "user", "content": "Mend order_file."},
            {"role": "assistant", "content": "The parser of order_file breaks the lookup."},
        ]
    )
    assert "Details" not in render(facts, budget_tokens=900, count=len)
    other = extract(
        [{"role": "assistant", "content": "The parser of order_file breaks the lookup."}]
    )
    assert "Details" in render(other, budget_tokens=900, count=len)
    assert "Details" not in render(other, budget_tokens=900, count=len, visible="see order_file")


def test_changed_files_come_before_read_ones_however_new() -> None:
    """Whatever was done to them."""
    for action in ("edited", "created", "moved", "deleted", "odd"):
        facts = Facts(files=(FileFact("old", action, "x", 1), FileFact("new", "read", "x", 9)))
        assert text_of(files_section(facts))[0].startswith("old")


def test_all_values_that_no_longer_hold_are_named() -> None:
    """With a comma between them."""
    said = Said(
        0, "use a_1 and b_2", superseded_by="no", superseded_at=1, old_values=("a_1", "b_2")
    )
    assert text_of(user_section(Facts(user=(said,))))[0].endswith(
        "(superseded later: a_1, b_2 no longer holds)"
    )


def test_long_paths_lose_their_shared_folder_in_large_details_only() -> None:
    """Below six hundred tokens the note on it costs more than it saves."""
    said = [
        {"role": "assistant", "content": f"I read /srv/shop/deep/api/mod_{n}.py for order_{n}x."}
        for n in range(30)
    ]
    facts = extract(said)
    large = details(facts, 600, lambda text: len(text) // 4)
    assert large.startswith("## Details (> call, = result) (left out of paths: /srv/shop/deep/)")
    assert "/srv/shop/deep/api" not in large.partition("\n")[2]
    assert "api/mod_" in large
    assert details(facts, 599, lambda text: len(text) // 4).startswith(
        "## Details (> call, = result)\n"
    )


@pytest.mark.parametrize(
    "key", ["content", "subject", "title", "text", "task", "description", "step", "name"]
)
def test_a_todo_item_is_named_by_any_of_the_usual_keys(key: str) -> None:
    """Whichever the tool calls it."""
    assert listed(call("x", todos=[{key: "do it"}])) == [("do it", "pending", 0)]


def test_an_item_is_known_by_the_first_of_its_ids() -> None:
    """`taskId` before `id` before `task_id`."""
    made = [call("task_add", **{key: key, "title": key}) for key in ("taskId", "id", "task_id")]
    for change in (
        {"taskId": "taskId", "id": "id", "task_id": "task_id"},
        {"id": "id", "task_id": "task_id"},
        {"task_id": "task_id"},
    ):
        done = listed(*made, call("task_set", status="done", **change))
        assert [text for text, status, _ in done if status == "done"] == [next(iter(change))]


@pytest.mark.parametrize("key", ["command", "cmd", "commands", "script", "input"])
def test_a_command_is_found_under_any_of_the_usual_keys(key: str) -> None:
    """Whichever the tool calls it."""
    assert ran_fact(call("bash", **{key: "ls"}), "x", 0) == CommandFact("ls", "ok", "x", 0)


@pytest.mark.parametrize(
    "name", ["fetch", "browse", "open_url", "http_get", "go", "goto", "navigate", "crawl"]
)
def test_a_page_is_fetched_under_any_of_the_usual_names(name: str) -> None:
    """Where the call says a url."""
    found = ran_fact(call(name, url="u"), "x", 0)
    assert found is not None
    assert found.kind == "fetch"


def test_the_edges_of_a_result_have_their_lengths() -> None:
    """An exit code in the first or last 400 characters, a failure in the first 200 of text."""
    code = "exit code 1"
    assert outcome_of(" " * (400 - len(code)) + code + "\n" + "x" * 900).status == "failed"
    assert outcome_of("y" * 401 + code + "\n" + "x" * 500).status == "ok"
    assert outcome_of("y" * 900 + "\n" + code + " " * (400 - len(code))).status == "failed"
    assert outcome_of("y" * 900 + "\n" + code + " " * 401).status == "ok"
    assert outcome_of("\n" * 300 + "Error: x").status == "failed"
    assert first_error("plain\n" + " " * 395 + "error") == " " * 395 + "error"
    assert first_error("plain\n" + " " * 396 + "error") == "plain"


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
     ("a.py", "path"), ("http://a", "url")],
)  # fmt: skip
def test_what_kind_of_value_a_word_is(value: str, kind: str | None) -> None:
    """Ordinary words are none."""
    assert values_of(value).get(value) == kind


def test_what_begins_like_a_long_command_is_that_command() -> None:
    """Eighty characters are enough to recognise it."""
    facts = Facts(commands=(CommandFact("c" * 90, "ok", "", 0),))
    assert missing(facts, "d " + "c" * 80 + " d").commands == ()
    assert missing(facts, "d " + "c" * 79 + " d").commands == facts.commands


def test_records_say_by_default_that_nothing_is_known() -> None:
    """An identifier that was seen once, alone, at the beginning."""
    plain = Identifier("i", "id")
    assert (plain.named, plain.bodies, plain.user, plain.assistant, plain.results) == (0,) * 5
    assert (plain.first, plain.last, plain.spread, plain.crowd) == (0, 0, 1, 1)
    assert (Line(1, "x").group, Excerpt(0, "user", "x").keys) == ("", ())
    ledger = Ledger()
    ledger.add(Effect("a", "edited", "x"), 3)
    assert ledger.facts() == (FileFact("a", "edited", "x", 3, {"edited": 1}),)
