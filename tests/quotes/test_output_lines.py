"""Which words of an output are quoted."""

import json
import re
from itertools import chain

import pytest

from praison_compressor.messages import ToolCall
from praison_compressor.quotes import deciding_line, read_quotes
from tests.helpers.native import asks, brings, result, use
from tests.helpers.transcripts import step
from tests.quotes.outputs import CODE, NOTES, OUTPUTS, PROGRESS
from tests.quotes.rendered import quoted

RUN = ToolCall("c", "bash", '{"command": "make check"}')


@pytest.mark.parametrize(
    ("output", "words"), [row[1:] for row in OUTPUTS], ids=[row[0] for row in OUTPUTS]
)
def test_the_words_that_decide_are_quoted(output, words):
    """The quote has the deciding words of an output, wherever they are."""
    line = " ".join(deciding_line(RUN, output).split())
    assert [word for word in words if word not in line] == []


@pytest.mark.parametrize("row", OUTPUTS, ids=[row[0] for row in OUTPUTS])
def test_nothing_is_said_in_words_of_our_own(row):
    """Every part of the line but ellipsis and exit code is in the output."""
    output = " ".join(row[1].replace("\\n", " ").split())
    line = re.sub(r"^exit code -?\d+(?:: )?", "", deciding_line(RUN, row[1]))
    parts = [part.strip(' ,"') for whole in line.split(" … ") for part in whole.split('", "')]
    flat = re.sub(r"\W", "", output)
    assert [part for part in parts if re.sub(r"\W", "", part) not in flat] == []


@pytest.mark.parametrize(
    "last",
    [
        *("}", "]", "-" * 70, "Wall time: 1 s", "exit code 0", "bash-5.2$"),
        *("Shell cwd was reset to /w", " 99%|█████████▉| 99/100"),
        *("tests/a.py::test_b PASSED", "[loop-guard] three times"),
    ],
)
def test_a_last_line_that_says_nothing_is_not_quoted(last):
    """A last line of brackets, progress or prompts gives way to a deciding line."""
    assert deciding_line(RUN, f"{NOTES}\n11 passed, 1 failed\n{last}") == "11 passed, 1 failed"


@pytest.mark.parametrize("output", ["", "\n\n", "}\n" * 200, PROGRESS, "-" * 500])
def test_an_output_without_a_deciding_word_gives_none(output):
    """An output without a deciding word gives no quote."""
    assert deciding_line(RUN, output) == ""


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", '{"path": "src/a.py"}'),
        ("bash", '{"command": "cat src/a.py | head -40"}'),
        ("view", '{"filePath": "src/a.py"}'),
        ("bash", '{"command": "cd /w && sed -n 1,40p a.py"}'),
    ],
)
def test_a_text_that_was_asked_for_is_no_report(name, arguments):
    """Of a file's text only a refusal to read it is quoted."""
    call = ToolCall("c", name, arguments)
    assert deciding_line(call, CODE) == ""
    assert "No such file" in deciding_line(call, "cat: src/a.py: No such file or directory")


def test_an_exit_code_that_is_not_zero_is_quoted():
    """A nonzero exit code is quoted once beside the deciding words."""
    assert deciding_line(RUN, f"{NOTES}\n2 failing\nexit code 7") == "exit code 7: 2 failing"
    assert deciding_line(RUN, "make: *** [all] Error 2\nexit code 2").count("exit code 2") == 1


# -------------------------------------------------------------- in their sections


def test_the_newest_run_of_a_command_is_quoted():
    """The newest run is quoted beside the newest failed one."""
    outputs = ("1 failed, 11 passed", "3 failed, 9 passed", "10 passed", "12 passed")
    runs = [step(f"c{n}", text, "bash", command="make check") for n, text in enumerate(outputs)]
    mended, broken = (quoted([*chain(*some)]) for some in (runs, runs[:2]))
    assert "[s1.4] make check -> 3 failed, 9 passed\n" in mended
    assert "[s1.8] make check (newest of 4) -> 12 passed" in mended
    assert "1 failed" not in mended + broken
    assert "10 passed" not in mended


def test_a_call_without_a_result_says_so():
    """A call without a result is quoted as such beside an answered one."""
    calls = [use("a", "deploy", target="web"), use("b", "deploy", target="db")]
    text = quoted([asks(*calls), brings(result("b", "rolled out"))])
    assert "deploy web -> no result was recorded" in text
    assert "deploy db -> rolled out" in text


def test_ids_that_are_used_again_pair_with_their_own_step():
    """Calls with repeated ids are paired within their own step."""
    steps = (("alpha", "one"), ("beta", "two"))
    text = quoted([m for said, key in steps for m in step("call_0", said, "look_up", key=key)])
    assert "look_up one -> alpha" in text
    assert "look_up two -> beta" in text


def test_an_error_flag_is_quoted_as_the_protocol_has_it():
    """`is_error` is quoted beside a text that does not say it."""
    failed = brings(result("a", "No page.", is_error=True))
    text = quoted([asks(use("a", "fetch", url="x")), failed])
    assert "is_error: No page." in text


def test_an_environments_output_is_not_the_users_words():
    """An environment's output in the user's role is the result of the agent's text call."""
    messages = [
        {"role": "user", "content": "Mend the cart."},
        {"role": "assistant", "content": "Let me look.\n```\nls\n```"},
        {"role": "user", "content": "cart.py\n(Open file: n/a)\n(Current directory: /w)\nbash-$"},
    ]
    assert [one.text for one in read_quotes(messages).user_texts] == ["Mend the cart."]
    assert "ls ``` -> in the user's role: cart.py" in quoted(messages)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("Verdict: PASS", "Verdict: PASS"),
        ("**Final verdict:** APPROVE\n" + NOTES, "**Final verdict:** APPROVE"),
        ("## Recommendation\n\nDo not merge.\n\n" + NOTES, "Recommendation Do not merge."),
        ("All of it was read twice.", "All of it was read twice."),
    ],
)
def test_a_report_is_quoted_by_its_two_ends(end, words):
    """A report is quoted by its first sentence and its conclusion."""
    report = f"## Report\nGood. I read it all. Let me compile.\n{NOTES}\n{end}\nagentId: a1"
    line = deciding_line(ToolCall("a", "Task", "{}"), report)
    assert line == f"Good. I read it all. … {words}"


def test_an_omitted_line_between_two_quoted_ones_is_marked():
    """An omitted line between two quoted lines is marked by an ellipsis."""
    line = deciding_line(RUN, "github.com\n  ✓ Logged in\n  - Active account: true")
    assert line == "github.com … - Active account: true"


def test_a_search_does_not_echo_its_query():
    """The quote of a search skips a first line that repeats the query."""
    call = ToolCall("a", "WebSearch", '{"query": "best tea"}')
    found = 'Web search results for query: "best tea"\n\nDarjeeling is praised.\n' + NOTES
    assert deciding_line(call, found) == "Darjeeling is praised."


def test_an_acknowledgement_is_its_first_sentence():
    """An acknowledgement is quoted without its announcements and repeated arguments."""
    given = "- print an error\n" * 20
    call = ToolCall("a", "ExitPlanMode", json.dumps({"plan": given}))
    done = "The user has approved your plan. You can now start coding, beginning with the list:"
    assert deciding_line(call, f"{done}\n{given}") == "The user has approved your plan."
