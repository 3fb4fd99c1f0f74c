"""Masks replace old tool outputs by one stable line before a model is paid."""

import functools
import itertools
import json
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ConfigError, ContextCompressor, MemoryStore
from praison_compressor.messages import Message, ToolCall, text_of
from praison_compressor.view.masks import (
    large_results,
    mask_line,
    mask_results,
    policy_of,
    results_with_calls,
)
from tests.helpers import compressing
from tests.helpers.transcripts import find_repairs, outputs, said, step, user

Model = functools.partial(compressing.Model, "## Done\nEvery part that was looked at is in order.")


def config(**options: Any) -> CompressorConfig:
    small = {"model": "gpt-4o", "context_window": 8_000, "protect_last_n_tokens": 1_000}
    return CompressorConfig(**{**small, **options})


LONG = "lorem ipsum dolor " * 100


def masks_of(messages: list[Message]) -> list[Message]:
    return [m for m in messages if m["role"] == "tool" and text_of(m).startswith("[masked]")]


ROWS = "\n".join(f"tests/test_{n}.py ....... [ {n}%]" for n in range(20))
SHOWN = "import re\n\n" + "def render(node):\n    return node\n" * 97


@pytest.mark.parametrize(
    ("printed", "call", "line"),
    [
        (SHOWN, "cat a.py b.py", ": 197 lines, 3,309 characters"),
        (
            f"{ROWS}\n1 failed, 209 passed in 3.41s",
            "pytest -q",
            ': 21 lines, 649 characters; "1 failed, 209 passed in 3.41s"',
        ),
        (
            f"{ROWS}\nValueError: order 12 has no rows\n[exit 3]",
            "make bill",
            ': 22 lines, 661 characters; "exit code 3: ValueError: order 12 has no rows"',
        ),
    ],
    ids=["nothing decides", "a count decides", "exit code"],
)
def test_a_masks_line_names_call_size_and_reference(printed, call, line):
    """A mask's line has call, size, deciding words and reference, and no claim."""
    result = step("call_1", printed, "shell_line", command=call)
    ((_, calls),) = results_with_calls(result)
    for reference in ("; s2.1", ""):
        masked = mask_results(calls, result[1], reference[2:])
        assert text_of(masked) == f"[masked] shell_line {call}{line}{reference}"


# ---------------------------------------------------------------- masked first


def test_a_mask_quotes_no_text_that_is_one_deciding_line():
    """A result of one deciding line is not quoted in its mask."""
    failed = "Error: no such file"
    assert '"' not in mask_line(ToolCall("c", "bash", "{}"), failed, failed)
    assert f'"{failed}"' in mask_line(ToolCall("c", "bash", "{}"), f"{failed}\n", failed)


def test_masks_that_suffice_cost_no_model_call():
    """Masks that suffice replace old outputs without a model's call."""
    model = Model()
    ours = ContextCompressor(config(), summarizer=model)
    messages = outputs(20)
    result = ours.compress_sync(messages)
    assert (result.context_status, result.summary_method, model.requests) == ("masked", None, [])
    assert result.masked == len(masks_of(result.messages)) >= 10
    assert result.usage.prompt_tokens == 0
    assert result.tokens_after <= 0.8 * 6_000
    assert len(result.messages) == len(messages)
    assert find_repairs(result.messages) == []
    assert result.messages[-1] == messages[-1]


def test_a_mask_says_what_it_replaces():
    """A mask names tool, arguments, size and reference."""
    masks = masks_of(
        ContextCompressor(config(), summarizer=Model()).compress_sync(outputs(20)).messages
    )
    for words in ("read_file", "src/part_2.py", "characters", "s3.1"):
        assert words in text_of(masks[2])


def test_a_recorded_mask_stays_and_the_prefix_with_it():
    """In a growing session a recorded mask stays, byte for byte."""
    ours = ContextCompressor(config(), summarizer=Model())
    messages = outputs(24)
    ends = range(6, len(messages) + 1, 4)
    views = [ours.compress_sync(messages[:end]) for end in ends]
    steady = [
        later.messages[: len(earlier.messages)] == earlier.messages
        for earlier, later in itertools.pairwise(views)
        if later.masked == earlier.masked
    ]
    held = [
        set(map(text_of, masks_of(earlier.messages))) <= set(map(text_of, masks_of(later.messages)))
        for earlier, later in itertools.pairwise(views)
    ]
    assert steady == [True] * len(steady) != []
    assert held == [True] * len(held)
    assert max(view.masked for view in views) >= 10


def test_equal_lines_lead_back_to_their_own_originals():
    """Equal lines of two outputs have two references and two originals."""
    messages = outputs(2)
    for number in (1, 2):
        body = "begin " * 40 + f"middle-{number} " + "lorem " * 200 + "end " * 40
        messages += [user("again"), *step("call_0", body, path="same.py")]
    messages += [said("Seen."), *outputs(15)[1:]]
    ours = ContextCompressor(config(), summarizer=Model())
    view = ours.compress_sync(messages).messages
    lines = [text_of(m) for m in masks_of(view) if "same.py" in text_of(m)]
    assert [line.rpartition("; ")[2] for line in lines] == ["s3.1", "s4.1"]
    assert ours.verbatim(view) == messages


def test_a_result_asked_for_again_is_shown():
    """The result of a repeated call is not replaced by the first one's mask."""
    ours = ContextCompressor(config(), summarizer=Model())
    messages = outputs(20)
    assert ours.compress_sync(messages).masked > 10
    again = [*messages, {"role": "user", "content": "Read part 2 once more."}, *messages[10:12]]
    assert again[-1] == messages[11]
    assert ours.compress_sync(again).messages[-1] == messages[11]


@pytest.mark.parametrize("policies", ["keep_none", {"read_*": "mask", "bash": "keep"}])
def test_without_a_model_the_named_tools_are_masked(policies):
    """Without a model a tool that a policy masks is masked."""
    ours = ContextCompressor(config(tool_policies=policies))
    assert ours.compress_sync(outputs(20)).context_status == "masked"


@pytest.mark.parametrize("policies", [{}, {"bash": "keep"}, {"bash": "mask"}])
def test_without_a_model_an_unnamed_tool_is_not_masked(policies):
    """Without a model no output of a tool that no policy names is masked."""
    result = ContextCompressor(config(tool_policies=policies)).compress_sync(outputs(20))
    assert (result.context_status, result.masked) == ("summarized", 0)


def test_the_summarizer_reads_originals_not_masks():
    """Outputs that were masked and are summarized later are read whole."""
    model = Model()
    ours = ContextCompressor(config(), summarizer=model)
    messages = outputs(20)
    assert ours.compress_sync(messages).context_status == "masked"
    talk = [
        {"role": role, "content": f"{role} says {n}: " + "many words of talk " * 80}
        for n in range(12)
        for role in ("assistant", "user")
    ]
    result = ours.compress_sync([*messages, *talk])
    shown = "\n".join(model.requests)
    assert result.summary_method == "model"
    assert "[masked]" not in shown
    assert "lorem ipsum dolor " * 100 + "END-3" in shown
    assert ours.verbatim(result.messages) == [*messages, *talk]


# ---------------------------------------------------------------- policies


def test_a_policy_is_found_by_name_then_by_the_first_pattern():
    """A tool's policy is found by its name, then by the first pattern, else it is `mask`."""
    policies = {"*": "summarize", "read_*": "keep", "read_file": "mask"}
    assert policy_of("read_file", config(tool_policies=policies)) == "mask"
    assert policy_of("read_dir", config(tool_policies=policies)) == "summarize"
    assert policy_of("bash", config(tool_policies={"read_*": "keep"})) == "mask"
    with pytest.raises(ConfigError, match="tool_policies"):
        config(tool_policies={"bash": "drop"})


def test_thresholds_bound_what_is_masked():
    """The newest outputs of `protect_last_n_tokens` stay."""
    messages = outputs(9, words=220)
    ours = ContextCompressor(config(protect_last_n_tokens=2_300), summarizer=Model())
    result = ours.compress_sync(messages)
    assert result.context_status == "masked"
    assert result.messages[-7:] == messages[-7:]
    assert len(masks_of(result.messages)) == 7


@pytest.mark.parametrize(
    ("policies", "lines"),
    [({"read_*": "mask"}, True), ("keep_none", True), ({"bash": "mask"}, False), ({}, False)],
)
def test_the_summarizer_reads_masks_of_masked_tools(policies, lines):
    """The summarizer reads masks of just the outputs that a policy masks."""
    model = Model()
    messages = outputs(20)
    talk = "The task goes on in order, as it was said. " * 60
    messages = [
        {**m, "content": talk + str(n)} if m["role"] == "assistant" and m["content"] else m
        for n, m in enumerate(messages)
    ]
    ours = ContextCompressor(config(tool_policies=policies), summarizer=model)
    result = ours.compress_sync(messages)
    read = sum(f"src/part_{t}.py" in model.requests[0] for t in range(20))
    assert (result.summary_method, len(model.requests)) == ("model", 1)
    assert read >= 10
    counted = [model.requests[0].count(words) for words in ("[masked] read_file", LONG)]
    assert counted == ([read, 0] if lines else [0, read])
    assert ours.verbatim(result.messages) == messages


# ---------------------------------------------------------------- results that are too large


def lines(count: int, name: str = "a") -> str:
    return "\n".join(f"line {n} of {name}: value {n * 7919 % 100_003}" for n in range(1, count))


def asked(*results: str, name: str = "read_file") -> list[Message]:
    """Return one question, and the unanswered results of parallel calls."""
    calls = [step(f"call_{n}", body, name, part=n) for n, body in enumerate(results)]
    together = {**calls[0][0], "tool_calls": [each[0]["tool_calls"][0] for each in calls]}
    return [{"role": "user", "content": "Look."}, together, *(each[1] for each in calls)]


def left_out(text: str) -> str:
    """Return the line that replaces what is not shown."""
    return next(line for line in text.split("\n") if line.startswith("[… lines "))


@pytest.fixture(
    params=[lines(4_000), json.dumps(lines(4_000)), "words of one line, " * 8_000, "x" * 200_000],
    ids=["lines", "a JSON literal, as hosts send it", "one line", "one word"],
)
def cut(request):
    """Return a compressor, its model, a large result's text, and its request and view."""
    whole = json.loads(request.param) if request.param.startswith('"') else request.param
    ours = ContextCompressor(config(recall=True), summarizer=(model := Model()))
    messages = asked(request.param)
    return ours, model, whole, messages, ours.compress_sync(messages)


def excerpt(result: Any) -> tuple[str, str, str]:
    """Return the newest output's beginning, the line that replaces its middle, and its end."""
    text = text_of(result.messages[-1])
    return text.partition(left_out(text))


def test_a_result_that_is_too_large_is_cut_at_once(cut):
    """A large result keeps its ends, without a model's call."""
    _, model, whole, _, result = cut
    head, _, tail = excerpt(result)
    assert (result.context_status, result.newly_masked, model.requests) == ("masked", 1, [])
    assert whole.startswith(head.rstrip("\n"))
    assert whole.endswith(tail.lstrip("\n"))
    assert 700 < len(head) + len(tail) < 5_000
    assert result.tokens_after < 600


def test_the_middle_of_a_large_result_is_archived(cut):
    """An excerpt's reference reads the middle of a large result."""
    ours, _, whole, _, result = cut
    head, line, _ = excerpt(result)
    reference, _, last = line.partition('archive("')[2].partition('"')[0].rpartition("-")
    read = "".join(ours.read(f"{reference}-{last}").split("\n")[2:4])
    middle = whole[len(head.rstrip("\n")) :].lstrip("\n")
    assert middle.replace("\n", "").startswith(read[:60])
    assert len(read) > 20


def test_an_excerpt_expands_to_its_original(cut):
    """A view with an excerpt expands to the messages."""
    ours, *_, messages, result = cut
    assert ours.verbatim(result.messages) == messages


def test_an_excerpt_stays_in_the_next_view(cut):
    """An excerpt stays in the next view."""
    ours, *_, messages, result = cut
    talk = [said("Seen."), user("And now?")]
    assert ours.compress_sync([*messages, *talk]).messages == [*result.messages, *talk]


@pytest.mark.parametrize("last", ["", "\n1 failed, 1799 passed in 12.3s"])
def test_an_excerpt_shows_the_deciding_line_of_its_gap(last):
    """The one failed test stands at the gap with its line's number, within the excerpt's room."""
    passed = [f"tests/test_errors.py::test_failure_{n:04} PASSED   [ 50%]" for n in range(1_800)]
    failed = [*passed[:900], "tests/test_totals.py::test_round_up FAILED   [ 50%]", *passed[901:]]
    sent = [
        text_of(ContextCompressor(config(recall=True)).compress_sync(messages).messages[-1])
        for messages in (asked("\n".join(rows) + last, name="bash") for rows in (passed, failed))
    ]
    gap = sent[1].split("\n").index(left_out(sent[1]))
    shown = "[line 901] tests/test_totals.py::test_round_up FAILED [ 50%]"
    assert sent[1].split("\n")[gap + 1] == shown
    assert "[line " not in sent[0]
    assert len(sent[1]) <= len(sent[0])


def test_results_of_one_step_share_the_window():
    """Results of one step that together exceed the window are shortened."""
    ours = ContextCompressor(config())
    result = ours.compress_sync(asked(*(lines(100, f"r{n}") for n in range(8)), "small"))
    assert result.tokens_before > 8_000
    assert result.tokens_after < 6_000 / 2
    assert (result.masked, text_of(result.messages[-1])) == (8, "small")
    assert ours.store.open("default", ours.session_id).entries[7].segment.kind == "excerpt"


def test_a_large_result_of_a_tool_with_keep_stays_whole():
    """A large result of a tool with `keep` stays whole where it fits."""
    ours = ContextCompressor(config(context_window=60_000, tool_policies={"read_*": "keep"}))
    messages = asked(lines(1_400))
    assert ours.compress_sync(messages).messages == messages
    by_default = ContextCompressor(config(context_window=60_000))
    assert by_default.compress_sync(messages).context_status == "masked"


def test_a_large_result_with_a_picture_stays_whole():
    """The archive returns text only, so a large result with a picture stays."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    messages = asked(lines(250))
    messages[-1]["content"] = [{"type": "text", "text": messages[-1]["content"]}, picture]
    steps, tokens = [range(1, 3)], [20, 30, 5_000]
    assert large_results(messages, tokens, steps, config(), most=1_000) == {}
    messages[-1]["content"].remove(picture)
    assert [*large_results(messages, tokens, steps, config(), most=1_000)] == [2]


def test_an_excerpt_is_found_after_a_restart_and_hides_secrets(tmp_path):
    """Another process's compressor finds the excerpt with its secrets redacted."""
    secret = "PASSWORD=" + "tr0ub4dor-and-3" * 12
    body = "\n".join(f"{n}: {secret}" for n in range(2_000))
    url = str(tmp_path / "ledger.db")
    views = []
    for _ in range(2):
        ours = ContextCompressor(config(recall=True, store_url=url))
        views.append(ours.compress_sync(asked(body), session_id="s").messages)
        assert ours.store.verify() == []
        assert "tr0ub4" not in ours.read("s1.1:900-910", session_id="s")
        ours.close()
    assert views[0] == views[1]
    assert "tr0ub4" not in str(views[0][-1])
    assert "[secret:" in text_of(views[0][-1])


def test_an_excerpt_without_recall_names_no_archive():
    """Without recall the excerpt of an archive with recall names its gap only."""
    store, gaps = MemoryStore(), []
    for recall in (True, False):
        ours = ContextCompressor(config(recall=recall), store=store)
        view = ours.compress_sync(asked(lines(4_000)), session_id="s").messages
        gaps.append(left_out(text_of(view[-1])))
    assert ["archive" in gap for gap in gaps] == [True, False]
    assert len({gap.partition(" tokens")[0] for gap in gaps}) == 1


def test_an_old_excerpt_is_masked_then_summarized():
    """An old excerpt is replaced as its whole result would be."""
    ours = ContextCompressor(config(), summarizer=(model := Model()))
    messages = [*asked(lines(800)), *outputs(22)[1:]]
    kinds = set()
    ends = (n for n, m in enumerate(messages, 1) if n > 2 and m["role"] in ("user", "tool"))
    for end in ends:
        view = ours.compress_sync(messages[:end]).messages
        kinds.add(text_of(view[2])[:8])
        assert find_repairs(view) == []
    assert {"line 1 o", "[masked]"} <= kinds
    talk = [user("Well?"), said("so it goes " * 2_000), user("?")]
    result = ours.compress_sync([*messages, *talk])
    assert result.summary_method == "model"
    assert "line 799 of a" in model.requests[-1]
    assert ours.verbatim(result.messages)[: len(messages)] == messages


def test_a_large_result_is_no_burden_in_a_preview():
    """A preview shows a large result small without recording it."""
    ours = ContextCompressor(config(recall=True), summarizer=Model())
    seen = ours.preview([*outputs(14), *asked(lines(4_000))])
    assert seen.would_compress
    assert sum(part.tokens_after for part in seen.parts) < 8_000
    assert ours.store.open("default", ours.session_id).entries == ()


@pytest.mark.parametrize("options", [{"background": True}, {"extends": False}])
def test_a_large_result_is_no_burden_whichever_way_it_is_asked(options):
    """A shortened result names the archive only where it was recorded."""
    background = options.pop("background", False)
    ours = ContextCompressor(config(recall=True, background=background), summarizer=Model())
    messages = [*outputs(14), *asked(lines(4_000))]
    result = ours.compress_sync(messages, **options)
    assert result.tokens_after < 6_000
    assert ("archive(" in left_out(text_of(result.messages[-1]))) is background
    ours.close()
