"""What calls ask, and their arguments made shorter."""

import json
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import ToolCall, tool_calls_of
from praison_compressor.messages.display import short_names
from praison_compressor.messages.shortening import with_shorter_calls
from tests.helpers.native import asks, brings, result, use
from tests.helpers.transcripts import call, calling, find_repairs, prose, said, step, user

BIG = prose(28_000)
GIVEN: dict[str, Any] = {"path": "notes/a.txt", "content": BIG, "mode": 420}
ROWS = {"rows": [["x", n] for n in range(12_000)]}


SHAPES = {
    "messages": lambda given: step("a", "ok", "write", **given),
    "blocks": lambda given: [asks(use("a", "write", **given)), brings(result("a", "ok"))],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("given", "kept"), [(GIVEN, {"path": "notes/a.txt", "mode": 420}), (ROWS, {})]
)
def test_a_call_larger_than_the_window_is_no_dead_end(shape, given, kept):
    """Only the view shortens a large call, to a JSON object with both ends of its texts."""
    messages = [{"role": "user", "content": "Write it."}, *SHAPES[shape](given)]
    ours = ContextCompressor(CompressorConfig(model="gpt-4o", context_window=16_000))
    view = ours.compress_sync(messages)
    (call,) = tool_calls_of(view.messages[1])
    sent = json.loads(call.arguments)
    assert kept.items() <= sent.items()
    ends = sent.get("content", BIG)
    assert (ends[:20], ends[-20:]) == (BIG[:20], BIG[-20:])
    assert view.tokens_after < 4_000
    assert find_repairs(view.messages) == []
    assert ours.verbatim(view.messages) == messages
    longer = [*messages, said("Written."), user("And now?")]
    assert ours.compress_sync(longer).messages[: len(messages)] == view.messages


def test_a_short_name_has_no_more_folders_than_tell_paths_apart():
    """Only paths that share a name keep a folder."""
    given: list[tuple[str, dict[str, Any]]] = [
        ("read", {"path": "/srv/app/one/models.py"}),
        ("read", {"path": "/srv/app/two/models.py"}),
        ("read", {"path": "/srv/app/notes.md", "offset": 40}),
        ("edit_file", {"path": "/srv/app/two/models.py", "old": "a", "new": "b"}),
        ("bash", {"command": "git checkout -b ann/mend-it"}),
        ("get_order", {"order_id": "#W123"}),
        ("list_all", {}),
    ]
    calls = [ToolCall(str(n), name, json.dumps(each)) for n, (name, each) in enumerate(given)]
    assert short_names(calls, 48) == [
        *("…/one/models.py", "…/two/models.py", "…/notes.md", "…/two/models.py"),
        *("git checkout -b ann/mend-it", "#W123", ""),
    ]


def test_a_short_argument_stays_whole_beside_a_long_one():
    """Strings of up to 200 characters stay, however little room a call has."""
    message = calling(call("a", "write", content="x" * 9_000, path="p" * 200))
    shorter = with_shorter_calls(message, 300, lambda text, chars: text[:chars])
    given = json.loads(tool_calls_of(shorter)[0].arguments)
    assert given == {"content": "x" * 200, "path": "p" * 200}
