"""Bad input gives a clear error and loses nothing; listeners harm no turn."""

import copy
import functools
import json
import math
import pickle
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import (
    BudgetTooSmall,
    CompressorConfig,
    ConfigError,
    ContextCompressor,
    Event,
    InvalidMessages,
    SummaryReply,
    TokenCounter,
)
from praison_compressor.compressor.request import Options
from praison_compressor.errors import (
    HostMoved,
    NothingShorter,
    SessionNotFound,
    SummarizerUnavailable,
    SummaryError,
    SummaryRejected,
)
from praison_compressor.messages import text_of
from praison_compressor.praisonai import CompressorContext
from tests.helpers.compressing import SMALL, Model, compressor
from tests.helpers.transcripts import coding_turns

NUMBERS = [float("nan"), float("inf"), "x", "900", True, 900.5, 10**400, -(10**5_000), [9]]
CALLED = ("target_tokens", "overhead_tokens", "protect_last_n_tokens")


@pytest.mark.parametrize("wrong", NUMBERS, ids=type)
def test_a_value_that_is_no_number_of_tokens_is_refused(wrong):
    """A value that is no number of tokens is a `ConfigError` with the option's name."""
    ours = compressor()
    ours.compress_sync(coding_turns(20), session_id="s")
    asked = [
        (name, lambda n=name: ours.compress_sync(coding_turns(20), **{n: wrong})) for name in CALLED
    ]
    asked.append(("target_tokens", lambda: ours.resume("s", wrong)))
    asked.append(("context_window", lambda: CompressorConfig(context_window=wrong)))
    for name, ask in asked:
        with pytest.raises(ConfigError, match=rf"^{name}=.{{1,70}}: expected"):
            ask()


OPTIONS = [
    *(("model", 5), ("auxiliary_model", ["gpt-4o"]), ("auxiliary_api_base", 8080)),
    *(("auxiliary_api_key", b"sk"), ("summary_instructions", {}), ("store_key", b"key")),
    *[("context_window", wrong) for wrong in (0, -5, "8k", 1.5, True, 10**13, math.inf, 10**400)],
    *[("summary_target_tokens", wrong) for wrong in (0, "many")],
    *[("output_reserve", wrong) for wrong in (-1, 0.5, "none")],
    *(("token_floor", -1), ("token_floor", None), ("protect_last_n_tokens", None)),
    *(("protect_last_n_tokens", True), ("keep_recent_turns", -1), ("head_tokens", 1.5)),
    *(("quotes_budget_tokens", -1), ("summary_max_retries", -1), ("summary_max_retries", "two")),
    *[("trigger_ratio", wrong) for wrong in (0, 1.01, -1, True, "0.8", math.nan, None)],
    *(("idle_trigger_ratio", 0), ("cache_ttl_seconds", 0), ("cache_ttl_seconds", "1h")),
    *(("target_ratio", 7), ("fold_ratio", 0), ("min_gain_ratio", 1), ("min_gain_ratio", -0.1)),
    *[("timeout_seconds", wrong) for wrong in (0, -1, 1e10, math.nan, None, "soon")],
    *(("recall", "no"), ("background", "false"), ("background", None), ("keep_tool_steps", 1)),
    *(("redact_secrets", "yes"), ("redact_secrets", 0)),
    *(("fallback_models", "gpt-4o"), ("fallback_models", [""]), ("fallback_models", None)),
    *(("pinned", "Never push."), ("pinned", [""]), ("rule_sources", "*.md"), ("rule_sources", [5])),
    *[("tool_policies", wrong) for wrong in ({"bash": "drop"}, "keep_some", ["bash"], 5)],
    *[("store_url", wrong) for wrong in (5, "", b"", b"a.db", ["a.db"])],
    *[("namespace", wrong) for wrong in ("", "  ", None, 5, "nul\0", "x" * 5_000)],
]


@pytest.mark.parametrize(("name", "wrong"), OPTIONS)
def test_an_option_refuses_what_cannot_work(name, wrong):
    """The error names the option, the value in short, and what is expected."""
    with pytest.raises(ConfigError, match=rf"^{name}=.{{1,61}}: expected") as refused:
        CompressorConfig.from_mapping({name: wrong})
    assert len(str(refused.value)) < 250


def test_each_option_has_a_refused_value():
    """Every option is checked."""
    assert set(CompressorConfig.names()) == {name for name, _ in OPTIONS}


def test_each_option_has_a_meaning():
    """Every option is explained in sentences."""
    meanings = CompressorConfig.meanings()
    assert list(meanings) == list(CompressorConfig.names())
    assert [name for name, meaning in meanings.items() if not meaning.endswith(".")] == []


def test_a_configuration_is_read_only():
    """Nobody changes the policies of a configuration, or through them those of others."""
    given = {"bash": "keep"}
    for config in (CompressorConfig(tool_policies="keep_all"), CompressorConfig()):
        policies: Any = config.tool_policies
        with pytest.raises(TypeError, match="read-only"):
            policies["*"] = "mask"
        with pytest.raises(TypeError, match="read-only"):
            policies |= given
    config = CompressorConfig(tool_policies=given)
    given["bash"] = "mask"
    assert config.tool_policies == {"bash": "keep"}
    assert CompressorConfig(tool_policies="keep_all").tool_policies == {"*": "keep"}


@pytest.mark.parametrize("policies", [{}, "keep_all", {"read_*": "keep", "bash": "summarize"}])
def test_a_configuration_is_hashed_and_copied_as_a_value(policies):
    """Every copy of a configuration is the same read-only value."""
    config = CompressorConfig(model="gpt-4o", tool_policies=policies, pinned=["Never push."])
    plain = asdict(config)
    copies = [
        *(replace(config), copy.copy(config), copy.deepcopy(config)),
        pickle.loads(pickle.dumps(config)),
        *(CompressorConfig(**plain), CompressorConfig.from_mapping(json.loads(json.dumps(plain)))),
    ]
    assert {config, *copies} == {config}
    for each in copies:
        with pytest.raises(TypeError, match="read-only"):
            each.tool_policies["*"] = "mask"


def test_an_option_is_given_by_its_name():
    """An option cannot be given by its position."""
    with pytest.raises(TypeError, match="positional argument"):
        CompressorConfig("gpt-4o")


@pytest.mark.parametrize("make", [CompressorConfig, CompressorContext])
def test_a_misspelled_option_is_refused_with_the_nearest_name(make):
    """The constructor refuses an unknown name as `from_mapping` does."""
    with pytest.raises(ConfigError, match=r"'targt_ratio' \(did you mean 'target_ratio'"):
        make(targt_ratio=0.5)
    with pytest.raises(ConfigError, match=r"^no option 'modle' \(did you mean 'model'\?\)"):
        CompressorConfig(modle="x")
    # The agent has the model, so the nearest option is one with that word.
    with pytest.raises(ConfigError, match=r"^no option 'modle' \(did you mean 'auxiliary_model'"):
        CompressorContext(modle="x")
    with pytest.raises(ConfigError, match=r"^no option 'xyz'$"):
        make(xyz=1)
    # Of several options with the word, the one that begins with it.
    for word in ("trigger", "target"):
        meant = rf"^no option '{word}' \(did you mean '{word}_ratio'\?\)$"
        with pytest.raises(ConfigError, match=meant):
            make(**{word: 2})


def test_no_key_is_in_a_configurations_text():
    """A configuration's `repr` has no key."""
    keys = {"auxiliary_api_key": "sk-secret", "store_key": "sk-secret"}
    assert "sk-secret" not in repr(CompressorConfig(**keys))
    assert "sk-secret" not in repr(CompressorContext(**keys))


def test_no_password_is_in_the_refusal_of_a_store():
    """The error of a refused `store_url` has no password."""
    with pytest.raises(ConfigError, match=r"^store_url: a store of the kind 'mysql'") as refused:
        CompressorContext(store_url="mysql://ada:sk-secret@host/ledger")
    assert "sk-secret" not in str(refused.value)


def test_a_path_of_a_store_becomes_text():
    """A configuration has a store's path as text, which JSON takes."""
    path: Any = Path("work") / "a.db"
    assert CompressorConfig(store_url=path).store_url == str(path)


def test_a_reserve_that_leaves_nothing_of_the_window_is_refused():
    """A reserve as large as the window is refused with both numbers and a remedy."""
    wrong = {"context_window": 6_000, "output_reserve": 6_000}
    remedy = "output_reserve=6000: .* context_window=6000; lower output_reserve or raise"
    for make in (CompressorConfig, CompressorContext):
        with pytest.raises(ConfigError, match=remedy):
            make(**wrong)
        make(**{**wrong, "output_reserve": 5_999})


class NotAsync:
    def summarize(self, messages: Any, **given: Any) -> SummaryReply:
        return SummaryReply("Done.")


REFUSED = [
    (InvalidMessages, r"messages\[1\]", {"messages": [{"role": "user", "content": "x"}, 3]}),
    (BudgetTooSmall, "the budget is 20; raise target_tokens$", {"target_tokens": 20}),
    *[
        (ConfigError, f"^target_tokens={n}: expected a whole number from 1", {"target_tokens": n})
        for n in (0, -5)
    ],
    (
        ConfigError,
        "^no option 'forced' .did you mean 'force'..$",
        {"forced": True},
    ),
    (
        ConfigError,
        "^no option 'foo'; expected one of protect_last_n_tokens, .*, until$",
        {"foo": 1},
    ),
    (ConfigError, "^force='no': expected True or False", {"force": "no"}),
    (
        ConfigError,
        "^overhead_tokens=-1: expected a whole number from 0 to",
        {"overhead_tokens": -1},
    ),
    (ConfigError, "^extends=0: expected True or False", {"extends": 0}),
    (ConfigError, "^auxiliary_model=5: expected a text", {"auxiliary_model": 5}),
    # Two conversations without a name would share a session, and each other's archive.
    *[
        (ConfigError, rf"^{name}=.{{1,5}}: expected a name", {name: wrong})
        for name in ("session_id", "parent_session_id")
        for wrong in ("", 5)
    ],
    # SQLite and PostgreSQL hold no such name, so memory refuses it too.
    *[
        (ConfigError, rf"^{name}=.{{1,61}}: expected a name of", {name: wrong})
        for name in ("session_id", "parent_session_id")
        for wrong in ("nul\0", "\udc80", "x" * 5_000)
    ],
]
PARTS = (
    *("store", "on_event", "before_compression", "tokens", "telemetry", "clock"),
    "shares_sessions_with",
)


def test_lone_surrogates_are_replaced_only_in_requests(store):
    """Lone surrogates are sent as U+FFFD and archived as they are."""
    messages = [{**m, "content": f"{m['content']} \ud83d"} for m in coding_turns(12, steps=0)]
    messages += coding_turns(14)[1:]
    messages[-1]["content"] += " \ud83d"
    model = Model()
    result = compressor(model, store=store).compress_sync(messages, session_id="s")
    assert result.summary_method == "model"
    "".join([*model.requests, *map(text_of, result.messages)]).encode()
    assert compressor(store=store).verbatim(session_id="s") == messages


NAMED = ("undo", "resume", "recall_tools", "verbatim", "read")


def test_a_view_that_is_no_list_is_refused():
    """`verbatim` refuses a view that is no list of messages."""
    with pytest.raises(InvalidMessages):
        compressor().verbatim(3, session_id="s")


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        *(("read", {"reference": 5}), ("read", {"tokens": "x"})),
        *(("read", {"tokens": few}) for few in (-1, 0, 99)),
        *(
            ("recall_tools", {"turn_tokens": "x"}),
            ("recall_tools", {"turn_tokens": -1}),
            ("resume", {"session_id": "s", "target_tokens": ""}),
            ("resume", {"session_id": "s", "target_tokens": 0}),
        ),
        *((method, {"session_id": wrong}) for method in NAMED for wrong in ("", 5)),
        *(("save", {"messages": coding_turns(2), "session_id": wrong}) for wrong in ("", 5)),
    ],
)
def test_other_methods_name_the_argument_that_cannot_work(method, arguments):
    """Each method refuses a wrong argument, an empty session name too, by the argument's name."""
    ours = compressor()
    ours.compress_sync(coding_turns(20), session_id="s")
    with pytest.raises(ConfigError, match=f"^{list(arguments)[-1]}=.{{1,5}}: expected"):
        getattr(ours, method)(**arguments)


def test_no_messages_are_no_transcript_to_save(store):
    """`save([])` leaves the recorded transcript as it is."""
    ours = compressor(store=store)
    ours.compress_sync(coding_turns(20), session_id="s")
    assert not ours.save([], session_id="s")
    assert ours.verbatim(session_id="s") == coding_turns(20)


def test_an_option_that_is_none_is_left_out():
    """An option that is None has its configured value."""
    left_out = dict.fromkeys(Options.__annotations__)
    ours = compressor()
    result = ours.compress_sync(coding_turns(20), **{**left_out, "session_id": "s"})
    assert result.parent_session_id == "s"
    assert ours.context_use(coding_turns(20), **left_out) == ours.context_use(coding_turns(20))


@pytest.mark.parametrize(("error", "said", "arguments"), REFUSED)
def test_a_wrong_argument_of_a_call_is_refused(error, said, arguments):
    """The error of a wrong argument names its index or option, and what was expected."""
    with pytest.raises(error, match=said):
        compressor().compress_sync(**{"messages": coding_turns(9), **arguments})


MADE = functools.partial(functools.partial, ContextCompressor)
UNMADE = [
    *((MADE(summarizer=wrong), "expected") for wrong in ("gpt-4o", object(), NotAsync())),
    *((MADE(**{name: "sqlite:///a.db"}), f"^{name} is str; expected") for name in PARTS),
    (MADE(config={"context_window": 8_000}), "expected"),
    (MADE(store=Path("a.db")), "expected"),
    (MADE(clock=5), "^clock is int; expected a function"),
    (MADE(before_compression="no"), "^before_compression is str; expected a function"),
    (functools.partial(TokenCounter, 5), "^model=5: expected"),
    (functools.partial(CompressorConfig.from_mapping, None), "expected a mapping"),
]


@pytest.mark.parametrize(("make", "said"), UNMADE)
def test_a_part_of_another_type_is_refused(make, said):
    """A compressor's part, a counter's model or options of another type are refused when made."""
    with pytest.raises(ConfigError, match=said):
        make()


def test_a_listener_that_fails_harms_nothing():
    """An exception of a listener does not end a compression."""

    def bad(event):
        raise RuntimeError("listener")

    ours = ContextCompressor(SMALL, on_event=bad)
    assert ours.compress_sync(coding_turns(20)).summary_method == "static"


def test_an_event_is_the_same_for_every_listener():
    """Nobody can change the numbers of an event."""
    numbers = {"reason": "price"}
    event = Event("skipped", "s", numbers)
    with pytest.raises(TypeError):
        event.data["reason"] = "mine"
    numbers["reason"] = "another"
    assert event.data["reason"] == "price"


def test_every_error_of_a_summary_has_its_kind():
    """`kind` is the same attribute on each error of a model."""
    errors = SummarizerUnavailable("x", kind="auth"), SummaryRejected("echo"), SummaryError("x")
    assert [error.kind for error in errors] == ["auth", "rejected", "provider"]


def test_an_error_passes_between_processes():
    """A copied or pickled error has its class, its message and its numbers."""
    first = [
        InvalidMessages(3, "int", "a mapping"),
        BudgetTooSmall(9, 5, "what stays", "raise it", culprit="messages[1]"),
        ConfigError("model=5: expected a text"),
        NothingShorter(),
        SummarizerUnavailable("down", kind="quota", retry_after=2.0),
        SummaryRejected("empty", "no text"),
        SessionNotFound("no session 'x'"),
        HostMoved("agent.Agent.chat", "function"),
    ]
    for error in first:
        for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error), copy.copy(error)):
            assert (type(again), str(again)) == (type(error), str(error))
            assert vars(again) == vars(error)
