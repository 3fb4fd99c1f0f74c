"""Copies of the installed host, each with one of the places that we use moved: what becomes of us.

    python -m tests.benchmarks.host_copies [--only TEXT] [--at-once N]

A place is renamed, removed, given a new parameter (by keyword, or in front of all others), or made
of another kind (a coroutine, a function, a method); a name of ours is taken. In each copy a process
installs us and lets agents work on three client paths, in `chat`, `achat` and `iter_stream`, with
tool calls, past their window, before the strict local provider. A copy must end in "works", "works
without" a part that the log names, or "refused" before any request. Anything else is a fault: a
request refused, over the window or with its pairs apart, words of a turn that neither the view nor
the archive has, or no compression.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import logging
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers.processes import python

ROOT = Path(__file__).parents[2]
WINDOW = 5_000
WORKS, WITHOUT, REFUSED, FAULT = "works", "works without", "refused", "FAULT"

# Words that the host has elsewhere too: renamed on `self` in their own module alone.
COMMON = set(
    "__init__ chat achat agents chat_history clear_history execution context_compaction strategy "
    "auto_compact compact_threshold protected_tools from_env".split()
)
MOVED = ("renamed", "removed", "keyword", "in front")
DONE = {
    "free name": ("taken",),
    "property": ("renamed", "removed", "made a method", "made async"),
    "method": (*MOVED, "made async"),
    "coroutine method": (*MOVED, "made a function"),
}
"""What is done to a place of each kind."""
IMPORTED = {
    "ContextConfig": "context/models.py",
    "OptimizerStrategy": "context/models.py",
    "ContextManager": "context/manager.py",
}


class Copy(NamedTuple):
    """A copy of the host: the changed name, the change, and the name's file."""

    name: str
    done: str
    file: str
    """Below the host's folder."""


# ------------------------------------------------------------ the copies


def host() -> Path:
    """Return the installed host's folder."""
    import praisonaiagents

    return Path(praisonaiagents.__file__).parent


def copies() -> list[Copy]:
    """Return every copy; the first is the host as it is."""
    from praison_compressor.praisonai import host_names

    found = [Copy("", "as it is", "")]
    for place in host_names.probe()[0]:
        kind, before = place.row.kind, place.before
        file = _file(place.holder if kind == host_names.NEW else getattr(before, "fget", before))
        found += [Copy(place.row.name, done, file) for done in DONE[kind]]
    for read in host_names.READ:
        owner = host_names._resolved(read.owner)
        for name in read.names.split():
            kinds = [kind for kind in getattr(owner, "__mro__", ()) if name in vars(kind)]
            found.append(Copy(name, "renamed", _file((kinds or [owner])[0])))
    found += [Copy(name, "renamed", file) for name, file in IMPORTED.items()]
    return found


def _file(thing: Any) -> str:
    return str(Path(inspect.getsourcefile(inspect.unwrap(thing)) or "").relative_to(host()))


def make(copy: Copy, folder: Path) -> None:
    """Make the copy in a folder: links, but for what is changed."""
    target = folder / "praisonaiagents"
    shutil.copytree(host(), target, copy_function=os.symlink)
    if copy.name:
        for path, text in _changed(copy):
            (target / path).unlink()
            (target / path).write_text(text, "utf-8")


def _changed(copy: Copy) -> Iterator[tuple[Path, str]]:
    """Yield the host's modules that the copy changes, with their new text."""
    name, moved = copy.name, f"moved_{copy.name.strip('_')}"
    if copy.done == "renamed" and name not in COMMON:
        yield from _everywhere(rf"\b{name}\b", moved)
        return
    text = (host() / copy.file).read_text("utf-8")
    tree = ast.parse(text)
    body, function = _function(tree, name)
    if copy.done == "taken":
        yield Path(copy.file), _taken(text, name)
    elif function is None:  # a name of objects, renamed
        changed = re.sub(rf"\bself\.{name}\b", f"self.{moved}", text)
        yield Path(copy.file), re.sub(rf"^(    ){name}:", rf"\1{moved}:", changed, flags=re.M)
    elif copy.done == "renamed":
        function.name = moved
        changed = ast.unparse(tree).replace(f"@{name}.", f"@{moved}.")
        yield Path(copy.file), re.sub(rf"self\.{name}\(", f"self.{moved}(", changed)
    elif copy.done == "in front":
        function.args.args.insert(1, ast.arg("new_first"))
        where = rf"self\.{name}\(" if name in COMMON else rf"\.{name}\("
        given = (copy.file, ast.unparse(tree))
        yield from _everywhere(where, lambda call: f"{call[0]}None, ", *given)
    else:
        _edit(body, function, copy.done)
        yield Path(copy.file), ast.unparse(ast.fix_missing_locations(tree))


def _everywhere(
    pattern: str, by: str | Callable[[re.Match[str]], str], file: str = "", text: str = ""
) -> Iterator[tuple[Path, str]]:
    """Yield each module that the pattern changes; `text` is a file's text so far."""
    for path in host().rglob("*.py"):
        short = path.relative_to(host())
        before = path.read_text("utf-8")
        after = re.sub(pattern, by, text if str(short) == file else before)
        if after != before:
            yield short, after


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _function(tree: ast.Module, name: str) -> tuple[list[ast.stmt], Function | None]:
    """Return the first method of that name, and its class's body."""
    for kind in tree.body:
        if isinstance(kind, ast.ClassDef) and (name != "__init__" or kind.name == "AgentTeam"):
            for node in kind.body:
                if isinstance(node, Function) and node.name == name:
                    return kind.body, node
    return [], None


def _edit(body: list[ast.stmt], function: Function, done: str) -> None:
    """Change the function in that body."""
    place, is_async = body.index(function), isinstance(function, ast.AsyncFunctionDef)
    if done == "removed":
        body[place] = ast.Pass()
    elif done == "keyword":
        function.args.kwonlyargs.append(ast.arg("new_option"))
        function.args.kw_defaults.append(ast.Constant(None))
    elif done == "made a method":
        function.decorator_list.clear()
    elif function.decorator_list:  # a property, made async
        body[place] = ast.AsyncFunctionDef(**vars(function))
    else:
        word, name = "def" if is_async else "async def", function.name
        function.name = "moved_original"
        added = f"{word} {name}(self, *a, **k):\n    return self.moved_original(*a, **k)"
        body[place:place] = ast.parse(added).body


def _taken(text: str, name: str) -> str:
    """Return the text with a name of ours on the class that we put it on."""
    kind = "LLM" if name == "_in_loop_compaction" else "Agent"
    return re.sub(rf"^(class {kind}\b.*?:)$", rf"\1\n    {name} = True", text, count=1, flags=re.M)


# ------------------------------------------------------------ in a process of its own


def drive() -> None:
    """Install, let the agents work, and print the outcome."""
    seen: dict[str, Any] = {"moved": None, "lacking": {}, "said": [], "faults": [], "requests": 0}
    said = logging.StreamHandler(stream := io.StringIO())
    logging.getLogger("praison_compressor").addHandler(said)
    with contextlib.redirect_stdout(io.StringIO()):  # the host prints its errors
        try:
            _work(seen)
        except Exception as error:
            if type(error).__name__ != "HostMoved":
                raise
            seen["moved"] = str(getattr(error, "seam", error))
    seen["said"] = stream.getvalue().splitlines()
    print(json.dumps(seen))


def _work(seen: dict[str, Any]) -> None:
    from praison_compressor import install

    seen["lacking"] = install().lacking
    from praisonaiagents import ExecutionConfig

    from praison_compressor.praisonai import plugin  # noqa: F401 - what the entry point loads
    from tests.helpers import hosting

    long = ExecutionConfig(max_iter=50, max_tool_calls_per_turn=50, context_compaction=True)
    with hosting.by_itself(window=WINDOW, facts=r"L-\d+|END-\d+") as provider:
        for path in (hosting.OPENAI, hosting.LITELLM, hosting.RESPONSES):
            ours = hosting.context(provider, context_window=WINDOW)
            made = hosting.agent(provider, path, ours, tools=[hosting.look_up], execution=long)
            for number, mode in enumerate((made.chat, made.achat, made.iter_stream)):
                faults = _turn(provider, made, mode, number)
                seen["faults"] += [f"{path}, {mode.__name__}: {fault}" for fault in faults]
        seen["requests"] = len(provider.requests)


def _turn(provider: Any, made: Any, mode: Any, number: int) -> Iterator[str]:
    """Run a turn with tool calls; yield its faults."""
    from praison_compressor.praisonai import installed
    from praison_compressor.testing import Worker
    from tests.helpers import hosting

    def arguments(tool: str, nth: int) -> dict[str, Any]:
        return {"topic": f"topic-{number}", "part": 100 * number + nth}

    worker = Worker(5, parallel=4, tool="look_up", arguments=arguments, answer="Noted.")
    provider.answer_with(worker)
    first = len(hosting.of_agent(provider))
    front = [None] if "new_first" in inspect.signature(mode).parameters else []
    said = mode(*front, hosting.turn(number))
    if inspect.iscoroutine(said):
        said = asyncio.run(said)
    said = said if isinstance(said, str | None) else "".join(said)
    sent = hosting.of_agent(provider)[first:]
    given = installed().agents.of(made)
    # Hosts up to 1.7.10 end a stream that called tools without the answer's text.
    if not sent or (not said and mode.__name__ != "iter_stream"):
        yield f"no answer after {len(sent)} requests"
    if given is None:
        yield "the agent is not served"
        return
    # The host's OpenAI streams run one round of tools: that fits.
    if mode.__name__ != "iter_stream" and given.context_status != "summarized":
        yield f"sent {given.context_status}"
    yield from (f"refused: {record.error}" for record in sent if record.status != 200)
    yield from ("over the window" for record in sent if record.over_window)
    calls = [call for record in sent[:-1] for call in getattr(record.answer, "calls", ())]
    is_whole = given.context_status == "full"
    whole = () if is_whole else given.engine().verbatim(session_id=given.session_id)
    known = sent[-1].text + json.dumps([*map(dict, whole)])
    lost = [call for call in calls if f"END-{call.arguments['part']}" not in known]
    if lost or hosting.turn(number) not in known:
        yield f"{len(lost)} of {len(calls)} results lost"


# ------------------------------------------------------------ what became of a copy


def outcome(copy: Copy) -> tuple[str, str]:
    """Make the copy and let a process work on it; return a word and its detail."""
    with tempfile.TemporaryDirectory() as folder:
        make(copy, Path(folder))
        more = {"PYTHONPATH": os.pathsep.join([folder, str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}
        command = ("-m", "tests.benchmarks.host_copies", "drive")
        done = python(*command, folder=folder, environment={**os.environ, **more})
    try:
        seen = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return FAULT, (done.stderr.splitlines() or ["no output"])[-1]
    if seen["moved"]:
        return (FAULT if seen["requests"] else REFUSED), seen["moved"]
    parts = list(seen["lacking"])
    unsaid = [part for part in parts if not any(part in line for line in seen["said"])]
    if seen["faults"] or unsaid:
        return FAULT, "; ".join([*seen["faults"][:3], *(f"silent about {part}" for part in unsaid)])
    return (WITHOUT if parts else WORKS), ", ".join(parts)


def main() -> None:
    if sys.argv[1:] == ["drive"]:
        drive()
        return
    from tests.benchmarks.common import options, show

    given = options(__doc__, only="", at_once=2)
    made = [copy for copy in copies() if given.only in f"{copy.name} {copy.done}"]
    with ThreadPoolExecutor(given.at_once) as pool:
        found = list(pool.map(outcome, made))
    rows = [(*copy[:2], *each) for copy, each in zip(made, found, strict=True)]
    show("copies of the host", ("name", "done to it", "outcome", "of what"), rows)
    words = Counter(word for word, _ in found)
    print(f"{len(made)} copies: " + ", ".join(f"{count} {word}" for word, count in words.items()))


if __name__ == "__main__":
    main()
