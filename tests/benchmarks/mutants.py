"""Mutation testing: `python -m tests.benchmarks.mutants plan [--sample 200]`.

Each mutant is one small change of one expression (`mutating.py`). The tests are collected once; a
first run tells which lines each of them reaches; then every mutant is put in the place of its
function in a forked child, which runs only the tests that reach the changed line, the fastest
first, until one fails. mutmut and cosmic-ray start an interpreter and import everything for each
mutant: here one costs about the time of the first test that notices it.

A mutant that is not noticed within the time given survives; one that never ends is killed, and
counts so. The interval is Wilson's, 95 %, for the share of all possible mutants.

What survives, and why. Of the survivors that were looked at one by one most change nothing that can
be seen:

- a short way past code that gives the same by the long way (`_is_bare_and_clean`, `type(x) is dict
  or isinstance(x, Mapping)`, the common shape of a call, `is_bare`);
- `zip(..., strict=True)` where the lengths are equal by construction;
- `max(..., default=0)`, `max(1, sum)` and `max(0, room)` where the guarded case cannot come, or
  where a least size stands behind it (no stretch below 160 tokens is ever planned);
- a loop that goes one step further and finds nothing there (`range(..., tail_start + 1)`, `break`
  for `continue` where sizes only grow);
- a border at which a result can never stand (`head_end` and the cut are starts of steps);
- words for a person, names that are only compared with themselves, the length of a salt;
- defaults of records and of parameters that every caller gives.

What really is not held: weights and tolerances of the choice of clauses (`selection.py`) and of the
window round a name (`windows.py`: how far it looks, what it joins), whose effect is a matter of
degree, borders of how much of a text is looked at (`outcomes.py`: its first and last 4,000
characters), and the last word of some vocabularies.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import math
import os
import random
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from .mutating import Mutant, mutants, mutated

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "praison_compressor"
MODULES: dict[str, tuple[list[str], list[str]]] = {
    "plan": (["plan.py", "budget.py", "layout.py"], ["tests/test_plan*.py"]),
    "messages": (["messages/*.py"], ["tests/test_messages*.py"]),
    "ledger": (["ledger.py"], ["tests/test_ledger*.py"]),
    "facts": (["facts/*.py"], ["tests/test_facts*.py", "tests/test_static.py"]),
}
"""Of each module the files, and the tests of its own that are run on them: what only a test of the
whole package notices counts as surviving."""

SLOW = 60.0
"""Seconds: a mutant whose tests take longer is stopped as one that never ends."""


class Runner:
    """A pytest plugin that, in the place of one run, makes one for each mutant."""

    def __init__(self, files: Sequence[Path], options: argparse.Namespace) -> None:
        self._files = {str(path): path.read_text(encoding="utf-8") for path in files}
        self._options = options
        self.tried: list[tuple[Mutant, bool]] = []
        self.possible = 0
        self.error = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure once, then try every mutant."""
        # A server in a child would outlive it: what PostgreSQL does is told by other tests.
        items = [item for item in session.items if "postgres" not in item.nodeid]
        for item in items:
            _quicker(item)
        gc.collect()
        gc.freeze()
        reached = _in_child(lambda: _measured(items, self._files), 3_600)
        self.error = "the measuring run died" if reached is None else reached["failed"]
        if reached is None or self.error:
            return True
        print(f"measured {len(items)} tests in {sum(reached['seconds']):.0f} s", flush=True)
        found = [m for path, text in self._files.items() for m in mutants(path, text)]
        self.possible = len(found)
        started = time.monotonic()
        for mutant in _sampled(found, self._options.sample, self._options.seed):
            killed = self._is_killed(mutant, items, reached)
            self.tried.append((mutant, killed))
            if not killed:
                self._print(mutant)
            if time.monotonic() - started > self._options.seconds:
                break
        return True

    def _is_killed(self, mutant: Mutant, items: Sequence[Any], reached: dict[str, Any]) -> bool:
        chosen = _tests_of(mutant, reached)
        if not chosen:
            return False
        tree = mutated(self._files[mutant.path], mutant)
        limit = self._options.per_mutant

        def tries() -> bool | str:
            try:
                _put_in_place(mutant, tree)
            except LookupError as error:
                return f"not put in place: {error!r}"
            started = time.monotonic()
            for number in chosen:
                if not _passes(items[number]):
                    return True
                if time.monotonic() - started > limit:
                    return False
            return False

        outcome = _in_child(tries, int(limit + SLOW))
        if isinstance(outcome, str):
            raise RuntimeError(f"{mutant}: {outcome}")
        return True if outcome is None else bool(outcome)

    def _print(self, mutant: Mutant) -> None:
        lines = self._files[mutant.path].splitlines()
        where = Path(mutant.path).relative_to(PACKAGE)
        print(
            f"survives: {where}:{mutant.line} {mutant.words}: {lines[mutant.line - 1].strip()}",
            file=sys.__stdout__,
            flush=True,
        )


def _sampled(found: list[Mutant], size: int, seed: int) -> list[Mutant]:
    return random.Random(seed).sample(found, min(size or len(found), len(found)))


def _quicker(item: Any) -> None:
    """Fewer examples for a property, always the same ones."""
    from hypothesis import HealthCheck, Phase, settings

    function = getattr(item.obj, "__func__", item.obj)
    given = getattr(function, "_hypothesis_internal_use_settings", None)
    if given is None:
        return
    function._hypothesis_internal_use_settings = settings(
        given, max_examples=min(15, given.max_examples), database=None, derandomize=True,
        deadline=None, phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def _tests_of(mutant: Mutant, reached: dict[str, Any]) -> list[int]:
    """The tests that reach the mutant's lines, the fastest first; all for what runs at import."""
    if mutant.function is None:
        found = set(range(len(reached["seconds"])))
    else:
        lines: dict[str, list[int]] = reached["lines"].get(mutant.path, {})
        wanted = range(min(mutant.start, mutant.line), mutant.end + 1)
        found = {n for line, tests in lines.items() if int(line) in wanted for n in tests}
    return sorted(found, key=lambda number: reached["seconds"][number])


# ---------------------------------------------------------------- in a child


def _in_child(work: Callable[[], Any], seconds: int) -> Any:
    """What the work returns, done in a fork of this process; None where it died or never ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reading)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            answer = json.dumps(work()).encode()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(answer)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return json.loads(data) if data else None


def _passes(item: Any) -> bool:
    from _pytest.runner import runtestprotocol

    item._initrequest()
    reports = runtestprotocol(item, log=False, nextitem=None)
    return not any(report.failed for report in reports)


def _measured(items: Sequence[Any], files: dict[str, str]) -> dict[str, Any]:
    """Which lines of the files each test reaches, and how long it takes."""
    reached: dict[str, dict[int, list[int]]] = {path: defaultdict(list) for path in files}
    seconds, failed = [], []
    for number, item in enumerate(items):
        seen: set[tuple[str, int]] = set()
        started = time.monotonic()
        with _tracing(files, seen):
            if not _passes(item):
                failed.append(item.nodeid)
        seconds.append(time.monotonic() - started)
        for path, line in seen:
            reached[path][line].append(number)
    return {"lines": reached, "seconds": seconds, "failed": " ".join(failed)}


class _tracing:
    """Collects the lines that run, of these files, in every thread."""

    def __init__(self, files: dict[str, str], seen: set[tuple[str, int]]) -> None:
        self._files, self._seen = files, seen

    def __enter__(self) -> None:
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def __exit__(self, *details: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _enter(self, frame: FrameType, event: str, value: Any) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        self._seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    def _line(self, frame: FrameType, event: str, value: Any) -> Any:
        self._seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


# ---------------------------------------------------------------- a mutant in its place


def _put_in_place(mutant: Mutant, tree: ast.Module) -> None:
    """Have everybody who holds the function, or the name, run the mutant from now on."""
    module = _module_of(mutant.path)
    if mutant.function is not None:
        _replace_code(mutant, compile(tree, mutant.path, "exec"))
    else:
        _run_again(mutant, tree, module)
    for value in vars(module).values():
        clear = getattr(value, "cache_clear", None)
        if clear is not None:
            clear()


def _module_of(path: str) -> Any:
    return next(
        module
        for name, module in list(sys.modules.items())
        if name.startswith("praison_compressor") and getattr(module, "__file__", None) == path
    )


def _replace_code(mutant: Mutant, whole: CodeType) -> None:
    new = next(
        code
        for code in _codes(whole)
        if code.co_name == mutant.function and code.co_firstlineno == mutant.first
    )
    gc.unfreeze()
    held = [
        thing
        for thing in gc.get_objects()
        if type(thing) is FunctionType
        and thing.__code__.co_filename == mutant.path
        and thing.__code__.co_name == mutant.function
        and thing.__code__.co_firstlineno == mutant.first
    ]
    if not held:
        raise LookupError(mutant.function)
    for function in held:
        function.__code__ = new


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _run_again(mutant: Mutant, tree: ast.Module, module: Any) -> None:
    """A top-level statement run anew; who took the old value by name gets the new one."""
    statement = next(s for s in tree.body if _first(s) <= mutant.line <= (s.end_lineno or s.lineno))
    before = dict(vars(module))
    exec(compile(ast.Module([statement], []), mutant.path, "exec"), vars(module))
    changed = {k: v for k, v in vars(module).items() if before.get(k, module) is not v}
    for other in list(sys.modules.values()):
        if not getattr(other, "__name__", "").startswith(("praison_compressor", "tests.")):
            continue
        for name, value in list(vars(other).items()):
            if name in changed and value is before.get(name):
                setattr(other, name, changed[name])


def _first(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


# ---------------------------------------------------------------- the table


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Wilson's interval, 95 %, of a share."""
    if not tried:
        return 0.0, 1.0
    z, share = 1.96, killed / tried
    middle = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried**2))
    half /= 1 + z * z / tried
    return middle - half, middle + half


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", choices=MODULES)
    parser.add_argument("--sample", type=int, default=0, help="so many by chance; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after that long")
    parser.add_argument("--per-mutant", type=float, default=30, help="seconds of tests, at most")
    parser.add_argument("--only", default="", help="one file of the module")
    options = parser.parse_args()
    os.chdir(ROOT)
    sources, tests = MODULES[options.module]
    files = sorted({p for pattern in sources for p in PACKAGE.glob(pattern)})
    files = [path for path in files if not options.only or path.name == options.only]
    runner = Runner(files, options)
    paths = [str(p) for pattern in tests for p in sorted(ROOT.glob(pattern))]
    pytest.main(["-q", "-s", "-p", "no:cacheprovider", *paths], plugins=[runner])
    if runner.error or not runner.tried:
        print(f"the tests fail without any mutant: {runner.error}")
        return 2
    _table(runner, options.module)
    return 0


def _table(runner: Runner, module: str) -> None:
    by_file: dict[str, list[bool]] = defaultdict(list)
    for mutant, killed in runner.tried:
        by_file[str(Path(mutant.path).relative_to(PACKAGE))].append(killed)
    for name, outcomes in sorted(by_file.items()):
        print(f"  {name}: {sum(outcomes)} of {len(outcomes)}")
    tried = len(runner.tried)
    killed = sum(outcome for _, outcome in runner.tried)
    low, high = interval(killed, tried)
    print(
        f"{module}: {killed} of {tried} killed ({killed / tried:.1%}, 95 % interval "
        f"{low:.1%} to {high:.1%}), {runner.possible} possible"
    )


if __name__ == "__main__":
    sys.exit(main())
