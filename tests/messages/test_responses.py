"""Items of OpenAI's Responses API: refused as messages in words that help, and made messages of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from praison_compressor import InvalidMessages
from praison_compressor.facts import extract
from praison_compressor.messages import read
from praison_compressor.messages.responses import to_items, to_messages
from tests.helpers.command import runner
from tests.helpers.compressing import compressor
from tests.helpers.transcripts import Message


def called(id: str, path: str, output: str) -> list[Message]:
    """A step of a reasoning model."""
    arguments = json.dumps({"path": path})
    return [
        {"type": "reasoning", "id": f"rs_{id}", "summary": [], "encrypted_content": "x" * 40},
        {"type": "function_call", "call_id": id, "name": "read_file", "arguments": arguments},
        {"type": "function_call_output", "call_id": id, "output": output},
    ]


def items(turns: int) -> list[Message]:
    found: list[Message] = []
    for t in range(turns):
        found.append({"role": "user", "content": f"Look at part {t}."})
        found += called(f"c{t}", f"src/{t}.py", "lorem ipsum dolor " * 150)
    return found


@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_item_is_no_message_and_the_refusal_says_what_to_do(at: int) -> None:
    """Which it is, where it stands, and who converts it."""
    given = items(1)
    with pytest.raises(InvalidMessages) as caught:
        read([given[0], given[at]])
    assert caught.value.index == 1
    assert given[at]["type"] in str(caught.value)
    assert "praison_compressor.messages.responses: to_messages" in str(caught.value)


def test_the_command_says_so_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file of items is no transcript; which item, and what to do."""
    path = tmp_path / "items.json"
    path.write_text(json.dumps(items(1)))
    code, _, said = runner(monkeypatch, capfd)("inspect", path)
    assert code != 0
    assert "message 1 of the file is an item of OpenAI's Responses API" in said
    assert "to_messages" in said


class Item:
    """A client's object."""

    def __init__(self, fields: Message) -> None:
        self._fields = fields

    def model_dump(self, *, exclude_none: bool = False) -> Message:
        return {k: v for k, v in self._fields.items() if not (exclude_none and v is None)}


def test_items_are_compressed_by_way_of_messages() -> None:
    """Two lines do it, whatever is an object of the client's: items go in, items come out; no call
    without its reasoning and its output."""
    given = items(14)
    objects = [item if "role" in item else Item({**item, "status": None}) for item in given]
    assert to_messages(None, objects) == to_messages(None, given)
    ours = compressor()
    messages = to_messages("Be brief.", objects)
    view = ours.compress_sync(messages).messages
    instructions, sent = to_items(view)
    assert instructions == "Be brief."
    assert len(sent) < len(given)
    kinds = [item.get("type") for item in sent]
    calls = [at for at, kind in enumerate(kinds) if kind == "function_call"]
    around = {(kinds[at - 1], kinds[at + 1]) for at in calls}
    assert around == {("reasoning", "function_call_output")}
    assert to_items(ours.verbatim(view)) == ("Be brief.", given)
    assert [fact.path for fact in extract(messages).files] == [f"src/{t}.py" for t in range(14)]
