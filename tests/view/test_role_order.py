"""The order of roles in a view, as Mistral's API checks it."""

import pytest

from praison_compressor.messages import Message
from praison_compressor.testing import Rules, check_messages
from tests.helpers.compressing import Model, compressor
from tests.helpers.transcripts import step

WORDS = "lorem ipsum dolor " * 60
ASKED = {"role": "user", "content": "Do all of it."}


def read(number: int) -> list[Message]:
    """Return a step; each fifth one is of a tool that may be kept."""
    name = "read_file" if number % 5 else "ask_user"
    return step(f"c{number}", f"result {number} {WORDS}", name, path=f"{number}.py")


@pytest.mark.parametrize("options", [{}, {"pinned": ("Never push.",)}])
@pytest.mark.parametrize(
    "policies", [{"*": "mask"}, {"*": "summarize"}, {"*": "mask", "ask_user": "keep"}]
)
@pytest.mark.parametrize("has_model", [True, False])
def test_no_user_follows_a_tool_in_a_view(options, policies, has_model):
    """In no view a user's message follows a tool's."""
    model = Model() if has_model else None
    ours = compressor(model, tool_policies=policies, **options)
    messages, compressions = [ASKED], set()
    for number in range(40):
        messages += read(number)
        found = ours.compress_sync(messages, session_id="s")
        compressions.add(found.session_id)
        check_messages(found.messages, Rules(answered_results=True))
        assert found.tokens_after == ours.tokens.messages(found.messages)
    assert len(compressions) >= 3
    assert ours.compress_sync(found.messages, session_id="s").messages == found.messages


def test_a_preview_counts_the_lines_between():
    """Previews and `context_use` count the lines between result and summary."""
    ours = compressor(None, tool_policies={"*": "summarize", "ask_user": "keep"})
    messages = [ASKED, *(message for number in range(30) for message in read(number))]
    view = ours.compress_sync(messages, session_id="s").messages
    seen = ours.preview(messages, session_id="s")
    assert sum(part.tokens_after for part in seen.parts) + seen.opening == seen.tokens_after
    use = ours.context_use(messages, session_id="s")
    assert use.parts["free"] + use.parts["reserve"] + ours.tokens.messages(view) == use.window
    assert sum(use.messages.values()) == len(view)


def test_an_answer_in_words_stays_in_the_head():
    """The agent's first answer in words precedes the summary."""
    head = [ASKED, {"role": "assistant", "content": "I begin with the parser."}]
    steps = [message for number in range(30) for message in read(number)]
    assert compressor(None).compress_sync([*head, *steps]).messages[:2] == head
