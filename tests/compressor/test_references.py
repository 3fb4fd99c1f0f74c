"""A line of a view is read back by the reference before it."""

from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, MemoryStore
from tests.benchmarks.references import cited, leads_back
from tests.helpers.native import to_native
from tests.helpers.transcripts import call, step

BUILD = "compiling part\n" * 60 + "error: port 9090 is taken\n" + "cleaning up\n" * 60


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def todos(*items: tuple[str, str]) -> list[dict[str, str]]:
    return [{"content": content, "status": status} for content, status in items]


def work() -> list[dict[str, Any]]:
    """Return calls with results, parallel calls, a plan, files, and a refusal with words."""
    both = [call("p1", "bash", command="make build"), call("p2", "web_search", query="port 9090")]
    plan = {"todos": todos(("Mend the build", "in_progress"), ("Tell the team", "pending"))}
    refused = "The user denied this operation.\n<feedback>Use bun, never npm.</feedback>"
    return [
        {"role": "user", "content": "Look at the harbour gauge."},
        {"role": "assistant", "content": "It does not build."},
        {"role": "user", "content": "Mend the build of the harbour gauge."},
        *step("t", "Todos have been modified.", "todo_write", **plan),
        {"role": "assistant", "content": "Two at once.", "tool_calls": both},
        result("p1", BUILD),
        result("p2", "Nothing was found about that."),
        *step("n1", "Task #7 created", "task_create", subject="Ask the harbour master"),
        *step("n2", "Updated task #7 status", "task_update", task_id="7", status="completed"),
        *step("e", "0 replacements made", "edit_file", path="src/gauge.py", old="80", new="90"),
        *step("b", refused, "bash", command="npm install left-pad"),
        {"role": "assistant", "content": "The build stops at a port that is taken."},
        {"role": "user", "content": "Then free the port."},
    ]


@pytest.fixture(scope="module", params=[list, to_native], ids=["texts", "blocks"])
def compressed(request):
    """Return the compressor and each reference in the view with the words beside it."""
    config = CompressorConfig(model="gpt-4o", recall=True, protect_last_n_tokens=200)
    ours = ContextCompressor(config, store=MemoryStore())
    later = [{"role": "user", "content": f"Go on with part {n}. " * 40} for n in range(6)]
    messages = request.param([*work(), *later])
    view = ours.compress_sync(messages, session_id="s", target_tokens=1_200, force=True).messages
    return ours, cited(view)


def test_every_line_reads_back_what_stands_beside_it(compressed):
    """The reference of a line reads every word of the line, with room for them."""
    ours, lines = compressed
    assert [pair for pair in lines if not leads_back(ours, *pair)] == []


@pytest.mark.parametrize(
    "words",
    [
        "make build ->",
        "web_search port 9090 ->",
        "src/gauge.py: edit_file ->",
        "[in_progress] Mend the build",
        "7. [completed] Ask the harbour master",
        "Use bun, never npm.",
        "npm install left-pad ->",
    ],
)
def test_lines_of_each_kind_are_among_them(compressed, words):
    """The view has calls, parallel calls, files, plan items and a refusal's words."""
    assert [pair for pair in compressed[1] if words in pair[1]]


def test_a_result_names_its_call_and_a_call_its_result(compressed):
    """A result's message names its own calls, and the calls' message names every result."""
    ours, lines = compressed
    named = next(references for references, beside in lines if beside.startswith("make build"))
    place = int(named.strip(" []").rpartition(".")[2])
    of_result = ours.read(f"s1.{place}", session_id="s")
    assert f'[s1.{place - 1}] assistant\n-> bash({{"command": "make build"}})' in of_result
    assert ("-> web_search" in of_result) == ("Nothing was found" in of_result)
    of_call = ours.read(f"s1.{place - 1}", session_id="s")
    assert f"=> [s1.{place}] compiling part" in of_call
    assert "Nothing was found about that." in of_call
