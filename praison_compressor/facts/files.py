"""The trail of files, each with the last thing done to it, and the documents that bind an agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from ..config import FILE_ACTIONS
from ..messages import ToolCall
from .corrections import sentences
from .language import DISOBEYS, OBEYS, READS
from .model import GENERAL, Domain, FileFact, ToolAction
from .outcomes import Outcome
from .passages import argument_values, arguments_of, key_of
from .shell import Effect, applies_a_patch, effects, failing, spoken

_SHELL_KEYS = ("command", "cmd", "commands", "commandline", "script", "input")
_PATH_KEYS = frozenset(
    "filepath filepaths path filename file targetfile notebookpath relativepath absolutepath "
    "relativeworkspacepath sourcepath oldpath paths files replacements operations".split()
)
# These name a file only where they look like one: a ticket moves `from` a list, too.
_PERHAPS_PATH_KEYS = frozenset(("src", "source", "from", "uri"))
_PATHLIKE = re.compile(r"[/\\]|\.\w{1,8}$")
_TARGET_KEYS = "newpath destination destinationpath dest target to targetpath newname".split()
_SHELLS = re.compile(r"bash|shell|terminal|exec|run|command|console|process", re.I)
_VERBS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("moved", re.compile(r"(?<!re)move|rename|(?:^|_)mv(?:$|_)", re.I)),
    ("deleted", re.compile(r"delete|remove|unlink|(?:^|_)rm(?:$|_)", re.I)),
    ("edited", re.compile(r"edit|patch|replace|insert|update|modify|append|apply|diff", re.I)),
    ("copied", re.compile(r"copy|(?:^|_)cp(?:$|_)", re.I)),
    ("created", re.compile(r"create|write|save|new_file|touch|download|screenshot", re.I)),
    ("read", re.compile(r"read|view|open|cat(?:$|_)|get_file|show|load|fetch_file", re.I)),
)
_MAX_PATH = 300


def effects_of(call: ToolCall, domain: Domain = GENERAL) -> list[Effect]:
    """The files one call touches; what the domain says of a tool counts before its name."""
    arguments = arguments_of(call)
    rule = domain.action(call.name)
    if rule is not None:
        return _ruled(call, rule, arguments)
    if isinstance(arguments, str):
        return [*_patched(call.name, arguments), *_shelled(call, arguments)]
    if not isinstance(arguments, dict):
        return []
    patch = (text for key in ("patch", "input", "diff") for text in _texts(arguments.get(key)))
    found = list(_patched(call.name, *patch))
    action = action_of(call.name, arguments)
    if not found and action:
        found = list(_named(call.name, action, arguments))
    return found or [effect for text in command_texts(arguments) for effect in _shelled(call, text)]


def worked(effect: Effect, call: ToolCall, outcome: Outcome, output: str) -> bool:
    """Whether a call's effect on a file came about: `sed -i ... && make test` has edited it."""
    if not outcome.is_bad:
        return True
    if outcome.status == "refused":
        return False
    lines = command_texts(arguments_of(call)) if _SHELLS.search(call.name) else []
    program = effect.via.removesuffix(" -i")
    return bool(lines) and not any(program in failing(line, output) for line in lines)


def action_of(name: str, arguments: Mapping[str, Any]) -> str | None:
    """What a tool does to a file, by the verb in its name or in its `command` argument."""
    verb = arguments.get("command")
    if isinstance(verb, str) and re.fullmatch(r"[a-z_]+", verb) and "path" in arguments:
        return _verb(verb) or "edited"
    return _verb(name)


def _verb(name: str) -> str | None:
    return next((action for action, pattern in _VERBS if pattern.search(name)), None)


def _ruled(call: ToolCall, rule: ToolAction, arguments: Any) -> list[Effect]:
    """The files of a tool whose rule is known."""
    if rule.action == "command":
        return [found for text in command_texts(arguments, rule) for found in effects(text)]
    if rule.action not in FILE_ACTIONS or not isinstance(arguments, dict):
        return []
    if rule.argument:
        arguments = {"path": arguments.get(rule.argument), "to": _target(arguments)}
    return list(_named(call.name, rule.action, arguments))


def command_texts(arguments: Any, rule: ToolAction | None = None) -> list[str]:
    """The command lines among a call's arguments: those of the first argument that has any."""
    if isinstance(arguments, str):
        return [arguments]
    if not isinstance(arguments, Mapping):
        return []
    if isinstance(arguments.get("action"), Mapping):
        arguments = arguments["action"]
    if rule is not None and rule.argument:
        return _lines(rule.argument, arguments.get(rule.argument))
    given = {key_of(key): value for key, value in arguments.items()}
    return next((found for key in _SHELL_KEYS if (found := _lines(key, given.get(key)))), [])


def _lines(key: str, value: Any) -> list[str]:
    """The command lines of one argument; a list is one command's words, unless it is of lines."""
    words = _texts(value)
    is_argv = isinstance(value, list) and key != "commands" and len(words) > 1
    return [spoken(words)] if is_argv and not any(map(str.isspace, words[0])) else words


def _target(arguments: Mapping[str, Any]) -> str:
    given = {key_of(key): value for key, value in arguments.items()}
    return next((str(given[key]) for key in _TARGET_KEYS if given.get(key)), "")


def _named(via: str, action: str, arguments: Mapping[str, Any]) -> Iterator[Effect]:
    target = _target(arguments)
    for path in _paths(arguments):
        if action == "copied":
            yield Effect(target or path, "created", via)
        else:
            yield Effect(path, action, via, target if action == "moved" else "")


def _paths(arguments: Mapping[str, Any]) -> Iterator[str]:
    for key, value in arguments.items():
        if key_of(key) in _PATH_KEYS:
            yield from _path_values(value)
        elif key_of(key) in _PERHAPS_PATH_KEYS:
            yield from filter(_PATHLIKE.search, _path_values(value))


def names_a_file(arguments: Mapping[str, Any]) -> bool:
    """Whether an argument is called as paths are."""
    return any(key_of(key) in _PATH_KEYS for key in arguments)


def _path_values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip() and len(value) <= _MAX_PATH and "\n" not in value:
            yield value.removeprefix("file://").strip()
    elif isinstance(value, list):
        for item in value:
            yield from _path_values(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key_of(key) in ("path", "filepath", "filename", "file"):
                yield from _path_values(item)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _shelled(call: ToolCall, text: str) -> list[Effect]:
    if not _SHELLS.search(call.name):
        return []
    return [*(_patched(call.name, text) if applies_a_patch(text) else ()), *effects(text)]


_PATCH = re.compile(
    r"^\*\*\* (Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$|^--- (?:a/)?(\S+).*\n\+\+\+ "
    r"(?:b/)?(\S+)",
    re.M,
)
_PATCH_VERB = {"Add": "created", "Update": "edited", "Delete": "deleted"}


def _patched(via: str, *texts: str) -> Iterator[Effect]:
    for text in texts:
        if "*** " not in text and "+++ " not in text:
            continue
        last = ""
        for verb, path, target, old, new in _PATCH.findall(text):
            if verb:
                last = path.strip()
                yield Effect(last, _PATCH_VERB[verb], via)
            elif target:
                yield Effect(last, "moved", via, target.strip())
            elif new == "/dev/null":
                yield Effect(old, "deleted", via)
            else:
                yield Effect(new, "created" if old == "/dev/null" else "edited", via)


class Trail:
    """Collects effects in order; the last action on a file that worked is the one that counts."""

    def __init__(self) -> None:
        self._files: dict[str, FileFact] = {}
        self._spellings: dict[str, list[str]] = {}

    def add(self, effect: Effect, index: int, ok: bool = True) -> None:
        """Note one effect; a failed one is kept only for a file nothing else is known of.

        A name that is empty or has line ends of whatever kind is none: it would print lines.
        """
        if any(len(name.splitlines()) != 1 for name in (effect.path, effect.target or "-")):
            return
        path = self._spelled(effect.path)
        known = self._files.pop(path, None)
        action = effect.action
        if known and known.ok:
            # Reading a file again does not undo that it was changed.
            changed = known.action not in ("read", "deleted")
            if not ok or (action == "read" and changed):
                self._files[path] = known
                return
            action = "edited" if action == "created" and known.action != "deleted" else action
        self._files[path] = FileFact(path, action, effect.via, index, effect.target, ok)
        if effect.target and ok:
            self._moved_to(effect, index)

    def _moved_to(self, effect: Effect, index: int) -> None:
        name = effect.path.rpartition("/")[2]
        target = effect.target + name if effect.target.endswith("/") else effect.target
        target = self._spelled(target)
        self._files.pop(target, None)
        self._files[target] = FileFact(target, "created", effect.via, index)

    def _spelled(self, path: str) -> str:
        """The name under which the file is known; the path itself where it is new.

        Two paths mean one file where one ends with the whole of the other, of two parts at least,
        and no third one could be meant as well.
        """
        path = path.removeprefix("./")
        known = self._spellings.setdefault("/".join(path.split("/")[-2:]), [])
        if path in known:
            return path
        alike = [other for other in known if _ends_with(other, path) or _ends_with(path, other)]
        if len(alike) == 1:
            return alike[0]
        known.append(path)
        return path

    def facts(self) -> tuple[FileFact, ...]:
        """The files, in the order they were last touched."""
        return tuple(self._files.values())


def _ends_with(long: str, end: str) -> bool:
    return "/" in end and not end.startswith(("/", "~", "..")) and long.endswith("/" + end)


# -------------------------------------------------------------- documents that bind


_INSTRUCTIONS = re.compile(
    r"(?:^|[/\\])(?:(?:AGENTS|CLAUDE|GEMINI|QWEN|CRUSH|WARP)(?:\.local)?\.md|\.cursorrules|"
    r"\.windsurfrules|\.clinerules|\.goosehints|copilot-instructions\.md|\.cursor/rules/[^/]+)$",
    re.I,
)
"""Files that projects keep for agents to obey, whoever opens them."""
_NAMED = re.compile(r"\w\.[a-z]\w{1,9}\b|\.\w+rules\b", re.I)
_POLICY = re.compile(
    r"skill|polic(?:y|ies)|rules?|guidelines?|handbook|conventions?|instructions?|style.?guide|"
    r"contributing|playbook|runbook|standards|memory",
    re.I,
)
"""Names of documents that are written to be obeyed, where somebody says to read them."""
_PROSE = re.compile(
    r"\.(?:mdc?|markdown|txt|rst|adoc|org|html?|pdf|docx?|cursorrules|\w+rules|goosehints)$"
)
_FOREIGN = frozenset(
    "node_modules vendor vendored third_party third-party site-packages dist-packages venv .venv "
    "tmp temp download downloads attachment attachments upload uploads inbox cache .cache "
    "scraped crawl dist build fixtures testdata examples samples".split()
)
"""Folders of what others made."""
_FETCHES = re.compile(r"\b(?:clone|curl|wget|unzip|tar|fetch|download|aria2c|scp|gh repo)\b")


class Documents:
    """Which of the documents that an agent reads are its instructions."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._told: list[str] = []
        self._foreign: list[str] = []

    def copy(self) -> Documents:
        """The same, to go on alone."""
        other = Documents(self._domain)
        other._told, other._foreign = [*self._told], [*self._foreign]
        return other

    def hear(self, text: str) -> None:
        """Note what user, system and host say of documents."""
        self._told += [
            s for s in sentences(text) if _POLICY.search(s) or OBEYS.search(s) or _NAMED.search(s)
        ]

    def called(self, call: ToolCall) -> None:
        """Note what the agent itself wrote or fetched: nobody's instructions by its name alone."""
        arguments = arguments_of(call)
        made = [e for e in effects_of(call, self._domain) if e.action in ("created", "moved")]
        self._foreign += [name for effect in made for name in (effect.path, effect.target) if name]
        text = " ".join(argument_values(arguments))
        if _FETCHES.search(f"{call.name} {text}"):
            self._foreign += re.findall(r"[\w.-]{3,}", text)

    def source(self, call: ToolCall) -> str | None:
        """The name of the document that a call reads, where that is instructions."""
        values = list(argument_values(arguments_of(call)))
        effects = effects_of(call, self._domain)
        # A line that prints more than one file may print anybody's words.
        is_one = len(effects) == 1 and effects[0].action == "read"
        path = effects[0].path if is_one else "" if effects else _shown_by(call)
        path = path.replace("\\", "/").removeprefix("./")
        listed = any(
            fnmatchcase(name, pattern)
            for pattern in self._domain.rule_sources
            for name in filter(None, (path, path.rpartition("/")[2], call.name))
        )
        if listed:
            return path or call.name
        if any("://" in value for value in values):
            return None
        if path:
            return path if self._is_file(path) else None
        words = None if effects else _POLICY.search(call.name)
        return call.name if words and self._is_asked(call.name, words[0]) else None

    def _is_file(self, path: str) -> bool:
        parts = path.lower().split("/")
        name = parts[-1]
        if "." in name.lstrip(".") and not _PROSE.search(name):
            return False
        about = [s for s in self._told if _names(s, name)]
        if any(DISOBEYS.search(s) for s in about):
            return False
        if not _FOREIGN.isdisjoint(parts[:-1]):
            # Such a folder has to be named, and to be obeyed.
            return any(_names(s, "/".join(parts[-2:])) and OBEYS.search(s) for s in about)
        known = _INSTRUCTIONS.search(path)
        if about and (known or _POLICY.search(name) or any(map(OBEYS.search, about))):
            return True
        kind = _POLICY.search(name)
        if kind and self._is_asked(name, kind[0]):
            return True
        return bool(known) and not any(self._is_part(made, path) for made in self._foreign)

    def _is_asked(self, name: str, kind: str) -> bool:
        """Whether somebody says to read or follow a document of this name or kind."""
        about = [s for s in self._told if _names(s, name) or _names(s, kind.rstrip("s"))]
        asked = any(READS.search(s) or OBEYS.search(s) for s in about)
        return asked and not any(map(DISOBEYS.search, about))

    @staticmethod
    def _is_part(made: str, path: str) -> bool:
        """Whether a file is what was made, or lies in it."""
        made = made.replace("\\", "/").removeprefix("./").removesuffix(".git").strip("/")
        return f"/{path}".endswith(f"/{made}") or made in path.split("/")[:-1]


_SHOWS = re.compile(r"\s*(?:cat|less|more|bat|type|Get-Content)(?: -\S+)* ([\w./\\~-]+)\s*")


def _shown_by(call: ToolCall) -> str:
    """The one file that a command line prints, whatever it is called."""
    lines = command_texts(arguments_of(call)) if _SHELLS.search(call.name) else []
    shown = _SHOWS.fullmatch(lines[0]) if len(lines) == 1 else None
    return shown[1] if shown else ""


def _names(sentence: str, name: str) -> bool:
    return re.search(rf"(?<![\w]){re.escape(name)}", sentence, re.I) is not None
