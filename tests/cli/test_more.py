"""`mask`, `eval`, `status`, `new`, `resume`, and what a shell completes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from praison_compressor.messages import check
from praison_compressor.testing import LocalProvider, Summarizer
from tests.cli.conftest import SESSION
from tests.cli.test_commands import transcript
from tests.helpers.command import Run

# ---------------------------------------------------------------- mask


def test_mask_shortens_old_outputs_and_nothing_else(file: Path, tmp_path: Path, run: Run) -> None:
    """Same messages, same order, same pairs; only tool results before the tail differ."""
    out = tmp_path / "masked.json"
    done = run("mask", file, "--keep-tokens", 500, "--out", out, "--json")
    assert done.code == 0, done.err
    masked, whole = json.loads(out.read_text()), transcript()
    differing = [i for i, (a, b) in enumerate(zip(masked, whole, strict=True)) if a != b]
    assert differing == done.json["masked"] != []
    assert {whole[index]["role"] for index in differing} == {"tool"}
    assert check(masked) == []
    assert masked[-4:] == whole[-4:]
    assert done.json["tokens_after"] < done.json["tokens_before"]


def test_mask_leaves_the_tools_alone_that_are_to_be_kept(file: Path, run: Run) -> None:
    """And with them everything, where there is no other."""
    assert run("mask", file, "--keep-tokens", 0, "--keep", "read_*", "--json").json["masked"] == []
    assert "0 outputs masked" in run("mask", file, "--above", 100_000).out


# ---------------------------------------------------------------- eval


def test_eval_shows_what_a_model_forgets_and_what_repair_adds(
    file: Path, run: Run, provider: LocalProvider
) -> None:
    """A model that says next to nothing holds fewer facts alone than repaired."""
    provider.answer_with(Summarizer(text="Some ledgers were audited, and all of them balance."))
    model = ("--model", "writer", "--api-base", provider.base_url)
    done = run("eval", file, *model, "--json")
    assert done.code == 0, done.err
    (measure,) = done.json["conversations"]
    assert measure["method"] == "model"
    assert measure["held_by_model"] < measure["held_repaired"] <= measure["facts"]
    assert 0 < measure["held_static"] <= measure["facts"]
    assert measure["usage"]["prompt_tokens"] > 0
    assert "model alone" in run("eval", file, *model).out


def test_eval_lists_what_is_not_borne_out(file: Path, run: Run, provider: LocalProvider) -> None:
    """Claims that the conversation does not bear out: who chooses a model wants to know."""
    text = "Ledgers 1 to 20 audited: FACT-3 and FACT-4 balance in made_up_module.py."
    provider.answer_with(Summarizer(text=text))
    model = ("--model", "writer", "--api-base", provider.base_url)
    told = "[unverified: made_up_module.py is not in the originals]"
    [claim] = run("eval", file, *model, "--json").json["conversations"][0]["unverified"]
    assert claim == f"{text} {told}"
    assert told in run("eval", file, *model).out
    assert f"Marked: {text} {told}" in run("compress", file, "--window", 8_000, *model).out


def test_a_slow_model_is_waited_for_as_long_as_one_says(
    file: Path, run: Run, provider: LocalProvider
) -> None:
    """A minute is not enough for a model on a processor, and too much for who is in a hurry."""
    provider.answer_with(Summarizer(text="Some ledgers were audited.", delay_seconds=1.5))
    model = ("--model", "writer", "--api-base", provider.base_url)
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


def test_status_says_where_a_session_stands(run: Run, view: Path) -> None:
    """Its epoch, how often it was compressed, and how much is archived."""
    found = run("status", SESSION, "--json").json
    assert found["session"] == SESSION
    assert found["compressions"] == 1
    assert found["archived_messages"] > 0
    assert found["epoch"] in run("status", found["epoch"]).out


def test_a_fork_shares_what_was_compressed(run: Run, view: Path, file: Path) -> None:
    """`new` opens it once; its segments are its parent's."""
    done = run("new", "audit-2", "--from", SESSION, "--json")
    assert done.json["segments"] == len(run("show", SESSION, "--json").json)
    forked = run("lineage", SESSION, "--forks").out.splitlines()
    assert [line for line in forked if line.startswith("    audit-2 ")] != []
    assert "audit-2" not in run("lineage", SESSION).out
    assert run("new", "audit-2", "--from", SESSION).code == 2
    assert run("new", run("status", SESSION, "--json").json["epoch"], "--from", SESSION).code == 2
    assert run("new", "audit-3", "--from", "nobody").code == 4
    again = run("compress", file, "--window", 8_000, "--session", "audit-2", "--json").json
    assert again["messages"] == lines(view)


def test_a_session_is_resumed_from_the_store_alone(run: Run, view: Path) -> None:
    """Its view where the whole does not fit, the whole where it does; restored it is the input."""
    whole = transcript()
    assert json.loads(run("resume", SESSION, "--window", 8_000).out) == lines(view)
    assert json.loads(run("resume", SESSION, "--budget", 500_000).out) == whole
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


def completed(words: str) -> list[str]:
    """What bash is offered after these words."""
    environment = {
        **os.environ,
        "_PRAISON_COMPRESSOR_COMPLETE": "complete_bash",
        "COMP_WORDS": f"praison-compressor {words}",
        "COMP_CWORD": str(len(f"praison-compressor {words}".split(" ")) - 1),
    }
    code = "import sys; sys.argv[0] = 'praison-compressor'; from praison_compressor.cli import main"
    command = [sys.executable, "-c", f"{code}; main()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.stdout.split()


def test_a_shell_completes_commands_options_and_sessions(run: Run, view: Path) -> None:
    """The sessions are those of the store that the command would read."""
    assert completed("comp") == ["compress"]
    assert "--window" in completed("compress --w")
    assert completed("show aud") == [SESSION]
    assert completed("show --store sqlite:////nowhere/at/all.db aud") == []
