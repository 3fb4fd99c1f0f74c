"""After a refusal as too long the request is sent once more, as a smaller view."""

import contextlib
import json
from collections.abc import Callable

import pytest

from praison_compressor.testing import Failure, LocalProvider, Rules, Worker
from tests.helpers.hosting import (
    ANTHROPIC,
    EVERY_PATH,
    LONG,
    MODES,
    OUTGROWING,
    PATHS,
    agent,
    by_itself,
    context,
    of_agent,
    turn,
)

HALF = 3_000


@pytest.fixture(autouse=True)
def half(host):
    """Give the provider a window that is half of the option's."""
    host.set_window(HALF)


@pytest.fixture
def runs():
    """Return the list of what the agent's tool was asked, in order."""
    return []


def noting(runs: list[str]) -> Callable[[str], str]:
    """Return a tool that notes its runs."""

    def look_up(topic: str) -> str:
        """Look a topic up.

        Args:
            topic: what
        """
        runs.append(topic)
        return f"{topic}: " + turn(1, words=12)

    return look_up


def topic_of(tool: str, nth: int) -> dict[str, str]:
    return {"topic": f"t{nth}"}


def refused_views(host: LocalProvider) -> int:
    """Count the different views that were refused: older hosts send each three times."""
    return len({json.dumps(record.messages) for record in host.refused})


@pytest.mark.parametrize(
    ("path", "mode"),
    [*((path, "chat") for path in EVERY_PATH), (PATHS[1], "achat"), (PATHS[0], "iter_stream")],
)
def test_a_wrong_window_costs_one_refusal(host, path, mode):
    """A wrong window costs exactly one refusal."""
    made = agent(host, path, context(host))
    answers = MODES[mode](made, [turn(n) for n in range(10)])
    assert [answer.strip() for answer in answers] == [("Noted. " * 12).strip()] * 10
    assert refused_views(host) == 1
    window = made.context_compressor.for_model().config.context_window
    assert abs(window - HALF) <= HALF / 10
    assert len(of_agent(host)) >= 11


@pytest.mark.parametrize("path", EVERY_PATH)
def test_finished_tools_do_not_run_again(host, runs, path):
    """After a refusal within a tool loop no finished call runs again."""
    host.answer_with(Worker(16, tool="look_up", arguments=topic_of, answer="Noted."))
    made = agent(host, path, context(host), tools=[noting(runs)], execution=LONG)
    assert made.chat("Find the nine ledgers of Lisbon.") == "Noted."
    assert runs == [f"t{n}" for n in range(16)]
    assert refused_views(host) == 1
    assert all("nine ledgers of Lisbon" in r.text for r in of_agent(host))


@pytest.mark.parametrize(
    "options",
    [
        {"context_window": 12_000, "output_reserve": 4_000},
        {"context_window": None, "output_reserve": 130_000},
    ],
    ids=["than a window that was learned", "than the window of the model's table"],
)
def test_a_reserve_larger_than_the_window_is_replaced(host, options):
    """A reserve larger than the window is replaced by the usual one."""
    made = agent(host, PATHS[0], context(host, **options))
    assert all(made.chat(turn(n)) for n in range(14))
    assert refused_views(host) <= 1
    assert [record for record in host.requests if record.model == "aux"]


@pytest.mark.parametrize("path", EVERY_PATH)
def test_the_host_cuts_nothing_where_no_view_fits(host, runs, path, caplog):
    """If a provider refuses every view, the turn ends without the host's recovery."""
    worker = Worker(9, tool="look_up", arguments=topic_of)
    words = "Your input exceeds the context window of this model."
    too_long = Failure(400, words, "invalid_request_error", "context_length_exceeded")
    host.answer_with(lambda asked: too_long if len(runs) == 3 else worker(asked))
    made = agent(host, path, context(host), tools=[noting(runs)])
    said = None
    with contextlib.suppress(Exception):
        said = made.chat("Find the nine ledgers of Lisbon.")
    assert said is None
    assert runs == ["t0", "t1", "t2"]
    refused = [record for record in of_agent(host) if record.status == 400]
    assert 1 <= len(refused) <= 12
    assert all("nine ledgers of Lisbon" in record.text for record in refused)
    assert not any("shrank prompt" in line or "emergency" in line for line in caplog.messages)


def test_the_room_beside_max_tokens_is_learned(host):
    """The room that litellm's own `max_tokens` leaves is learned from one refusal."""
    host.set_window(8_000)
    asked = context(host, context_window=8_000)
    made = agent(host, ANTHROPIC, asked, llm="anthropic/claude-opus-4-1")
    for n in range(24):
        assert made.chat(turn(n)) is not None
    assert refused_views(host) == 1
    room = 8_000 - of_agent(host)[0].body["max_tokens"]
    config = made.context_compressor.for_model().config
    assert config.context_window - config.output_reserve == room


# ---------------------------------------------------------------- strict chat templates


@pytest.mark.parametrize("mode", ["chat", "achat"])
@pytest.mark.parametrize("path", PATHS)
def test_a_template_that_wants_roles_in_turns_refuses_once(path, mode):
    """A template that wants roles in turns refuses once."""
    with by_itself(Worker(answer="Noted. " * 12), rules=Rules(alternate=True)) as host:
        made = agent(host, path, context(host))
        made.chat_history.append({"role": "user", "content": "A question without an answer."})
        assert None not in MODES[mode](made, OUTGROWING)
        assert made.context_compressor.context_status == "summarized"
        assert refused_views(host) == 1
        assert "alternate" in host.refused[0].error
