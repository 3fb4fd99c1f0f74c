"""What all commands have in common; `eval`, `new`, `resume`, completion."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.cli.options import ELSEWHERE
from praison_compressor.messages import check
from tests.cli.conftest import SESSION
from tests.cli.test_commands import Writer, transcript
from tests.helpers.command import Run
from tests.helpers.readme_tables import commands, example

# ---------------------------------------------------------------- every command

RAW = re.compile(r"(?<![\w.,:/-])(\d{5,}(?![\w-])|\d+\.\d{5,})")
"""A number as no person reads it."""


def test_each_commands_example_works_and_numbers_are_for_people(run: Run, file: Path) -> None:
    """One after the other, in a folder with a transcript and a ledger: each help ends with it, and
    a wrong number is named as it was given. `demo` and `doctor` have tests of their own."""
    Path("talk.jsonl").write_bytes(file.read_bytes())
    store = ("--window", 8_000, "--session", "audit", "--store", "ledger.db")
    assert run("compress", file, *store).code == 0
    for name in sorted(commands(), key=lambda name: name == "forget"):
        line = example(commands()[name])
        assert run(name, "--help").out.splitlines()[-1].strip() == f"$ {line}"
        program, *arguments = shlex.split(line)
        assert (program, arguments[0]) == ("praison-compressor", name)
        if name in ("demo", "doctor"):
            continue
        done = run(*arguments)
        assert (done.code, done.err) == (0, ""), name
        assert done.out.startswith("[") or RAW.findall(done.out) == []
        wrong = (option for each in commands()[name].params for option in _whole(each))
        for number, option in enumerate(wrong):
            given = (-5, "many")[number % 2]
            refused = run(*arguments, option, given)
            assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
            assert f"{option} {given}: expected a whole number" in refused.err


def _whole(option: Any) -> list[str]:
    """The name of an option that is a whole number."""
    return option.opts[:1] if option.metavar in ("TOKENS", "N") else []


def test_every_option_of_the_configuration_is_one_of_compress_or_has_a_reason() -> None:
    """Written as in Python, with dashes, in every command; so what an error advises can be given.
    `--model` is whose window counts, `--auxiliary-model` writes."""
    names = {option: each.name for each in commands()["compress"].params for option in each.opts}
    written = {name: "--" + name.replace("_", "-") for name in CompressorConfig.names()}
    missing = {name for name, option in written.items() if names.get(option) != name}
    assert missing == set(ELSEWHERE) - {"namespace"}
    every = {(o, p.name) for c in commands().values() for p in c.params for o in p.opts}
    assert [pair for pair in every if names.get(pair[0], pair[1]) != pair[1]] == []


def test_options_of_every_type_reach_the_compressor(file: Path, run: Run) -> None:
    """Numbers, ratios, switches, pairs and lists; a wrong one is named as on the command line."""
    given = ("--output-reserve", "1k", "--trigger-ratio", 0.5, "--no-redact-archive", "--recall")
    pairs = ("--tool-policies", "read_*=summarize", "--fact-patterns", "fact=FACT-[0-9]+=?")
    done = run("compress", file, "--window", "8k", *given, *pairs, "--json").json
    ours = CompressorConfig(
        context_window=8_000,
        output_reserve=1_000,
        trigger_ratio=0.5,
        recall=True,
        tool_policies={"read_*": "summarize"},
        fact_patterns={"fact": "FACT-[0-9]+=?"},
    )
    assert done["messages"] == ContextCompressor(ours).compress_sync(transcript()).messages
    for option, wrong in (("--window", 0), ("--trigger-ratio", 2), ("--tool-policies", "never")):
        refused = run("compress", file, option, wrong)
        assert (refused.code, len(refused.err.splitlines())) == (2, 1)
        assert f"praison-compressor: {option} " in refused.err
    idle = run("compress", file, "--window", "8k", "--api-base", "http://127.0.0.1:9")
    assert (idle.code, "--api-base: does nothing without --auxiliary-model" in idle.err) == (
        2,
        True,
    )
    small = run("compress", file, "--window", "2k", "--output-reserve", "1.9k")
    assert (small.code, "lower --output-reserve" in small.err) == (3, True)


def test_an_option_whose_value_may_be_none_is_given_none(file: Path, run: Run) -> None:
    """Where leaving it out means something else; anything else that is no number is named."""
    messages = transcript(3)
    messages[3]["content"] = "\n".join(f"row {row}: FACT-{row}" for row in range(1_500))
    file.write_text(json.dumps(messages))
    given = ("compress", file, "--window", "32k", "--json")
    assert run(*given).json["context_status"] == "masked"
    whole = run(*given, "--large-result-share", "none", "--summary-target-tokens", "None").json
    assert (whole["context_status"], whole["messages"]) == ("full", messages)
    for option in ("--large-result-share", "--summary-target-tokens"):
        refused = run(*given, option, "nothing")
        assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
        assert refused.err.startswith(f"praison-compressor: {option} ")


# ---------------------------------------------------------------- masks alone


def test_masks_alone_shorten_old_outputs_and_nothing_else(file: Path, run: Run) -> None:
    """Same messages, same order, same pairs; only tool results before the tail differ."""
    given = ("compress", file, "--target", "6k", "--keep-tokens", 500)
    done = run(*given, "--tool-policies", "keep_none", "--out", "masked.json")
    assert (done.code, "Method: masks; no summary was needed" in done.out) == (0, True)
    masked, whole = json.loads(Path("masked.json").read_text()), transcript()
    differing = [i for i, (a, b) in enumerate(zip(masked, whole, strict=True)) if a != b]
    assert {whole[index]["role"] for index in differing} == {"tool"}
    assert check(masked) == []
    assert masked[-4:] == whole[-4:]


# ---------------------------------------------------------------- eval


def test_eval_shows_what_a_model_forgets_and_what_repair_adds(
    file: Path, run: Run, writer: Writer
) -> None:
    """A model that says next to nothing holds fewer facts alone than repaired. Probes ask what an
    agent needs that goes on: of the view, and of a model that answers from the view alone."""
    model = writer("Some ledgers were audited, and all of them balance.")
    done = run("eval", file, *model, "--probes", "--json")
    assert done.code == 0, done.err
    (measure,) = done.json["conversations"]
    assert measure["method"] == "model"
    assert measure["held_by_model"] < measure["held_repaired"] <= measure["facts"]
    assert 0 < measure["held_static"] <= measure["facts"]
    assert measure["usage"]["prompt_tokens"] > 0
    by_kind = {each["kind"]: each for each in measure["probes"]}
    assert by_kind["task"]["expected"] != []
    assert by_kind["task"]["lacking"] == []
    (told,) = [each for each in measure["answers"] if each["kind"] == "task"]
    assert told["lacking"] == told["expected"]
    shown = run("eval", file, "--probes").out
    assert "model alone" in shown
    assert "the view knows: task 100% of" in shown


def test_eval_lists_what_is_not_borne_out(file: Path, run: Run, writer: Writer) -> None:
    """Claims that the conversation does not bear out: who chooses a model wants to know."""
    text = "Ledgers 1 to 20 audited: FACT-3 and FACT-4 balance in made_up_module.py."
    model = writer(text)
    told = "[unverified: made_up_module.py is not in the originals]"
    [claim] = run("eval", file, *model, "--json").json["conversations"][0]["unverified"]
    assert claim == f"{text} {told}"
    assert told in run("eval", file, *model).out
    assert f"Marked: {text} {told}" in run("compress", file, "--window", 8_000, *model).out


def test_a_slow_model_is_waited_for_as_long_as_one_says(
    file: Path, run: Run, writer: Writer
) -> None:
    """A minute is not enough for a model on a processor, and too much for who is in a hurry."""
    model = writer("Some ledgers were audited.", delay_seconds=1)
    late = run("eval", file, *model, "--timeout", 0.5)
    assert (late.code, "no answer in 0.5 s" in late.out) == (0, True)
    assert "no answer" not in run("eval", file, *model, "--timeout", 30).out
    for wrong in (0, "inf", 1e300):
        assert run("eval", file, *model, "--timeout", wrong).code == 2


def test_eval_needs_something_to_measure(tmp_path: Path, run: Run) -> None:
    """Short conversations say nothing, and neither does a share of everything."""
    short = tmp_path / "short.json"
    short.write_text(json.dumps(transcript(1)[:3]))
    assert run("eval", short).code == 2
    assert run("eval", short, "--share", 1.5).code == 2
    assert "--limit -1: expected" in run("eval", short, "--limit", -1).err


# ---------------------------------------------------------------- stored sessions


def lines(view: Path) -> list[Any]:
    return [json.loads(line) for line in view.read_text().splitlines()]


def test_a_fork_shares_what_was_compressed(run: Run, view: Path, file: Path) -> None:
    """`new` opens it once; its segments are its parent's."""
    done = run("new", "audit-2", "--from", SESSION, "--json")
    assert done.json["segments"] == len(run("show", SESSION, "--json").json)
    forked = run("lineage", SESSION, "--forks").out.splitlines()
    assert [line for line in forked if line.startswith("    audit-2 ")] != []
    assert "audit-2" not in run("lineage", SESSION).out
    assert run("new", "audit-2", "--from", SESSION).code == 2
    assert run("new", run("lineage", SESSION, "--json").json[-1]["id"], "--from", SESSION).code == 2
    assert run("new", "audit-3", "--from", "nobody").code == 4
    again = run("compress", file, "--window", 8_000, "--session", "audit-2", "--json").json
    assert again["messages"] == lines(view)


def test_a_session_is_resumed_from_the_store_alone(run: Run, view: Path) -> None:
    """Its view where the whole does not fit, the whole where it does; restored it is the input."""
    whole = transcript()
    assert json.loads(run("resume", SESSION, "--window", 8_000).out) == lines(view)
    assert json.loads(run("resume", SESSION, "--budget", "0.5M").out) == whole
    resumed = view.parent / "resumed.json"
    told = run("resume", SESSION, "--window", 8_000, "--out", resumed, "--json").json
    assert (told["context_status"], told["messages"]) == ("summarized", len(lines(view)))
    assert json.loads(run("restore", SESSION, "--view", resumed).out) == whole
    assert run("resume", SESSION, "--budget", 1).code == 3
    assert run("resume", "nowhere").code == 4


def test_a_whole_session_is_restored(run: Run, view: Path) -> None:
    """Every message as it came; `--archive` only what was compressed."""
    whole = transcript()
    assert json.loads(run("restore", SESSION).out) == whole
    archived = json.loads(run("restore", SESSION, "--archive").out)
    assert 0 < len(archived) < len(whole)
    assert all(message in whole for message in archived)
    assert run("restore", SESSION, "--archive", "--view", view).code == 2


# ---------------------------------------------------------------- completion


def test_a_shell_completes_commands_options_and_sessions(
    run: Run, view: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sessions are those of the store that the command would read."""
    monkeypatch.setenv("_PRAISON_COMPRESSOR_COMPLETE", "complete_bash")
    for words, offered in (
        ("comp", ["compress"]),
        ("compress --win", ["--window"]),
        ("show aud", [SESSION]),
        ("show --store sqlite:////nowhere/at/all.db aud", []),
    ):
        monkeypatch.setenv("COMP_WORDS", f"praison-compressor {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
        assert run().out.split() == offered
