"""Define every option with its unit, its default and its check; read the environment.

Nothing else reads the environment. `Event` is here because every room emits it.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import os
import re
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

from .errors import ConfigError

MOST = 10**12
"""Tokens: a larger window or target is a mistake, and ratios of it would overflow."""

STORE_VARIABLE = "PRAISON_COMPRESSOR_STORE"

KEY_VARIABLE = "PRAISONAI_SESSION_KEY"
"""The host's own, for its `EncryptedSessionStore`."""

FILE_ACTIONS = ("read", "created", "edited", "deleted", "moved")
OTHER_ACTIONS = ("command", "search", "fetch", "none")

_MAY_BE_NONE = ("summary_target_tokens", "large_result_share")

PROMPT_FIELDS = ("transcript", "earlier", "instructions", "words")
"""Fields that a `summary_prompt` must have."""


@dataclass(frozen=True)
class CompressorConfig:
    """Options of a `ContextCompressor`; frozen, checked when made.

    Raises:
        ConfigError: a value that cannot work, with the field and what would.
    """

    model: str | None = None
    """The model that reads the view: whose window and tokenizer count. None: o200k_base counts."""

    context_window: int | None = None
    """Tokens the model can take. None: litellm's table; a logged guess where it does not know."""

    output_reserve: int | None = None
    """Tokens kept free for the answer. None: the smaller of 8,000 and a quarter of the window."""

    trigger_ratio: float = 0.8
    """Compress above this share of the usable window (window - reserve - overhead)."""

    target_ratio: float = 0.6
    """Compress down to this share of the trigger, so that it happens rarely."""

    token_floor: int = 2_000
    """Never compress a view of fewer tokens than this."""

    protect_last_n_tokens: int = 20_000
    """Newest tokens kept verbatim, as many as the summaries leave: half of the target less the head
    at least. From 20,000 on that half, where it is more. Under `target_tokens` a quarter of it,
    where not all fits; with a model at most half of what the head leaves."""

    keep_recent_turns: int | None = None
    """At least this many newest turns stay verbatim too, where they fit."""

    head_tokens: int | None = None
    """Room for the first exchange. None: a tenth of the usable window."""

    summary_target_tokens: int | None = 750
    """Length asked of the model's prose; twice that is the hard cap sent to the provider.
    None: 5 % of the segment, between 750 and 8,000."""

    facts_budget_tokens: int | None = None
    """Room for the deterministic facts beside the prose. None: a tenth of the target, or 3,000
    where an eighth of the target allows that."""

    fold_ratio: float = 0.28
    """Summaries that together pass this share of the target by more than one new summary are
    folded into one."""

    min_gain_ratio: float = 0.05
    """A compression that frees less than this share of the view is not worth its price."""

    tool_policies: Mapping[str, str] = field(default_factory=dict)
    """What becomes of old outputs, by tool name or pattern: "mask", "summarize" or "keep".
    "keep_all" and "keep_none" stand for "keep" and "mask" for every tool. What is not named is
    masked where that saves a call of the auxiliary model: where masks bring the view down to the
    target, or halfway there and free enough; else that model reads it whole, and of a tool with
    "mask" the line. What is kept yields where the window would burst, the oldest first."""

    mask_above_tokens: int = 200
    """Outputs up to this size are not worth masking."""

    mask_keep_recent_tokens: int | None = None
    """Newest tokens whose outputs are not masked. None: as `protect_last_n_tokens`, but no more
    than half the target."""

    large_result_share: float | None = 0.25
    """A tool's result of more tokens than this share of the window less `output_reserve` goes to
    the archive at once, the newest too. Its first and last lines stay, a quarter of that share, and
    between them how to read the rest. Several results of one step have twice the share together;
    those of a tool with "keep" stay whole, and those below `token_floor` where two fit. None: every
    result does, until it is old."""

    fact_tools: Mapping[str, str] = field(default_factory=dict)
    """What your own tools do, by name or pattern, for the facts beside each summary: "read",
    "created", "edited", "deleted" or "moved" (a file or document), "command", "search", "fetch",
    or "none". "edited:sheet" says that the argument `sheet` names it. The usual tools are known."""

    fact_patterns: Mapping[str, str] = field(default_factory=dict)
    """Identifiers of your domain: a kind and the regular expression that finds it, such as
    {"order": "ORD [0-9]{4}"}. They come before all others in the facts."""

    host_prefixes: tuple[str, ...] = ()
    """How texts begin that your application writes in the user's role, or below a tool's output:
    not the user's words, nor the tool's. Those of well-known hosts ("<system-reminder") are
    known."""

    rule_sources: tuple[str, ...] = ()
    """Documents whose rules bind your agent, by path, file name or pattern ("policies/*.md"), and
    tools whose results do ("get_policy"). Those that user, system or host tell it to follow, and a
    project's own AGENTS.md and its like, are known; nothing else that a tool returns ever binds."""

    keep_tool_steps: bool = True
    """In the host: complete each request with the tool steps of earlier turns, which the host drops
    when a turn ends. False: as the host does."""

    recall: bool | None = None
    """The agent has the recall tools: each summary and each masked output says how to read its
    originals with them. None: in the host for agents that call tools, from their first compression
    on; elsewhere no. True: from the first request on."""

    background: bool = False
    """Write summaries off the request path: no turn waits for a model."""

    soft_ratio: float = 0.85
    """In the background a summary is begun at this share of the trigger."""

    summarize_on_prefix: bool = False
    """Ask for a summary with the agent's own request and one message more, so that a provider that
    caches prefixes charges for little else. Only where the auxiliary model is the agent's own and
    a call hands over its tools; outputs that the view masks are read masked."""

    auxiliary_model: str | None = None
    """The model that writes summaries. None: in the host the agent's own, else none (static)."""

    auxiliary_api_base: str | None = None
    """Where the auxiliary model is served. None: where its provider usually is."""

    auxiliary_api_key: str | None = None
    """The key for it. None: what litellm finds in the environment."""

    fallback_models: tuple[str, ...] = ()
    """Models tried in order when the auxiliary model fails, before the static summary."""

    shown_message_tokens: int = 4_000
    """Tokens of one message that the summarizer is shown at most. Of a longer one, a tool result
    most often, it reads the head, the tail and the lines between that carry errors and names, and
    how much is left out. Less where the auxiliary model reads less at once, or would need more than
    16 calls."""

    summary_instructions: str | None = None
    """A domain's own words added to the request for a summary."""

    summary_prompt: str | None = None
    """The whole request for a summary, in place of ours: a template with each of these fields.
    {transcript}: the messages as tagged text, or partial summaries to be merged. {earlier}: earlier
    summaries and what to do with them, often empty. {instructions}: `summary_instructions`, the
    focus of `/compact` and what a hook adds. {words}: how many to write at most. Braces of your own
    are doubled."""

    verify_with: str | None = None
    """Who judges what a summary claims, beside the rules. "model": the model that wrote it is asked
    once more which claims that no rule doubts are false; a line that stands in the originals
    corrects them. That request is about as long as the summary's own. None: rules alone."""

    redact_secrets: bool | None = None
    """Mask keys and tokens in what a summary is written from. None: where the auxiliary model is
    another than the agent's own, or the ledger is on disk."""

    redact_archive: bool = True
    """Mask keys and tokens in what is written to a ledger on disk: originals and summaries.
    What is read back from there has the masks. A ledger in memory keeps originals as they are."""

    summary_max_retries: int = 2
    """Further tries with one model after a failure that may pass."""

    timeout_seconds: float = 60.0
    """For one call of the auxiliary model."""

    store_url: str | None = None
    """Where the ledger is kept. None: memory."""

    store_key: str | None = field(default=None, repr=False)
    """The key (Fernet) of an encrypted store. A new store is encrypted with it, a plain one stays
    plain. None: the variable PRAISONAI_SESSION_KEY, as for the host's encrypted sessions."""

    archive_limit_mb: float | None = None
    """Megabytes that the originals of a namespace may take in the store. Above it the large ones go
    first, then the small, the oldest before the newer; what stands for them in the view stays as it
    is. None: 256 in memory, any number in a database."""

    namespace: str = "default"
    """Keeps tenants apart: nothing is ever looked up across namespaces."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tool_policies", _policies(self.tool_policies))
        object.__setattr__(self, "fact_tools", _fact_tools(self.fact_tools))
        object.__setattr__(self, "fact_patterns", _fact_patterns(self.fact_patterns))
        for name in ("fallback_models", "host_prefixes", "rule_sources"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        ratios = "trigger_ratio target_ratio fold_ratio soft_ratio large_result_share"
        for name in ratios.split():
            self._require(name, "a number above 0 and up to 1", lambda v: 0 < v <= 1)
        self._require("min_gain_ratio", "a number from 0 up to 1", lambda v: 0 <= v < 1)
        # No clock of Python's waits for longer than some 292 years.
        self._require("timeout_seconds", "a positive number up to 1e9", lambda v: 0 < v <= 1e9)
        self._require("archive_limit_mb", "a positive number", lambda v: 0 < v <= MOST)
        for name in ("context_window", "summary_target_tokens", "shown_message_tokens"):
            self._require(name, "a positive whole number", lambda v: _is_whole(v, 1))
        counts = (
            "token_floor protect_last_n_tokens summary_max_retries mask_above_tokens "
            "output_reserve head_tokens facts_budget_tokens keep_recent_turns "
            "mask_keep_recent_tokens"
        )
        for name in counts.split():
            self._require(name, "a whole number, 0 or more", _is_whole)
        texts = (
            "model auxiliary_model auxiliary_api_base auxiliary_api_key summary_instructions "
            "store_key"
        )
        for name in texts.split():
            self._require(name, "a text", lambda v: isinstance(v, str))
        for name in _SWITCHES:
            self._require(name, "True or False", lambda v: True, switch=True)
        self._require("verify_with", '"model" or None', lambda v: v == "model")
        _check_prompt(self.summary_prompt)
        self._require("store_url", STORES, os.fspath)
        self._require("namespace", "a name that is not empty", lambda v: bool(v.strip()))
        window, reserve = self.context_window, self.output_reserve
        if window is not None and reserve is not None and reserve >= window:
            raise ConfigError(
                f"output_reserve={reserve}: leaves nothing of context_window={window}; lower "
                "output_reserve or raise context_window"
            )

    def _require(self, name: str, wanted: str, holds: Any, *, switch: bool = False) -> None:
        value = getattr(self, name)
        default = type(self).__dataclass_fields__[name].default
        if value is None and (default is None or name in _MAY_BE_NONE):
            return
        try:
            sound = isinstance(value, bool) is switch and holds(value)
        except (TypeError, ValueError, OverflowError, AttributeError):
            sound = False
        if not sound:
            raise ConfigError(f"{name}={_shown(value)}: expected {wanted}")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all options."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """Return the text below each option, on one line."""
        (tree,) = ast.parse(inspect.getsource(CompressorConfig)).body
        found: dict[str, str] = {}
        for option, text in itertools.pairwise(getattr(tree, "body", ())):
            if isinstance(option, ast.AnnAssign) and isinstance(text, ast.Expr):
                found[ast.unparse(option.target)] = " ".join(ast.literal_eval(text.value).split())
        return found

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> CompressorConfig:
        """Make a configuration of a dictionary; refuse an unknown name."""
        if not isinstance(options, Mapping):
            raise ConfigError(f"a {type(options).__name__}; expected a mapping of options")
        unknown = sorted(set(map(str, options)) - set(cls.names()))
        if unknown:
            raise ConfigError(
                f"{no_such('option', unknown[0], cls.names())}; "
                f"the options are {', '.join(cls.names())}"
            )
        return cls(**options)

    def with_environment(self, environ: Mapping[str, str] | None = None) -> CompressorConfig:
        """Return the configuration, completed from the environment."""
        environ = os.environ if environ is None else environ
        url = self.store_url or environ.get(STORE_VARIABLE) or None
        key = self.store_key or environ.get(KEY_VARIABLE) or None
        return replace(self, store_url=url, store_key=key)


@dataclass(frozen=True)
class Event:
    """One thing that happened in a session.

    `name` is one of "started", "model_called", "model_answered", "part_summarized", "fell_back",
    "committed", "abandoned", "skipped", "failed", "redacted"; `data` carries the numbers (tokens,
    messages, seconds, model, reason). Each "started" is ended by one "committed" or "abandoned",
    each "model_called" by one "model_answered", which has its cost or its `error`. "skipped"
    has in `reason` why something is not done: "cooldown" (that model rests after a failure), "no
    gain" (a compression is due and would free less than `min_gain_ratio`), "fixed part" (what
    cannot be dropped is above the trigger), "veto" (a hook refused). "no gain" and "veto" are
    emitted once until the next compression, "fixed part" once.
    """

    name: str
    session_id: str
    data: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]

Hook = Callable[[Event], Any]
"""Called before a compression, with its "started" event, before that event is emitted. It may be
async. False refuses the compression; a text is added to the request for the summary; None does
nothing."""


_SWITCHES = (
    "keep_tool_steps",
    "recall",
    "background",
    "summarize_on_prefix",
    "redact_secrets",
    "redact_archive",
)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to a name, or None."""
    return next(iter(get_close_matches(name.lower(), list(known), 1, cutoff=0.75)), None)


def no_such(kind: str, name: str, known: Iterable[str]) -> str:
    """Return an error's text for an unknown name, with the nearest one."""
    meant = nearest(name, known)
    return f"no {kind} {name!r}" + (f" (did you mean {meant!r}?)" if meant else "")


def whole(name: str, value: Any, least: int = -MOST) -> int:
    """Return an option of a call as a whole number.

    Raises:
        ConfigError: the value is no whole number, or out of range.
    """
    try:
        if not isinstance(value, bool) and _is_whole(value, least):
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    span = f"up to {MOST:,}" if least < 0 else f"from {least:,} to {MOST:,}"
    raise ConfigError(f"{name}={_shown(value)}: expected a whole number {span}")


def _is_whole(value: Any, least: int = 0) -> bool:
    return bool(int(value) == value and least <= value <= MOST)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python prints no number of more than 4,300 digits
        return f"a {type(value).__name__} too large to print"
    return text if len(text) <= 60 else f"{text[:60]}…"


def _policies(given: Any) -> dict[str, str]:
    """Check the policies; return them as a dictionary."""
    for_all = {"keep_all": {"*": "keep"}, "keep_none": {"*": "mask"}}
    if isinstance(given, str) and given in for_all:
        return for_all[given]
    known = ("mask", "summarize", "keep")
    if not isinstance(given, Mapping) or any(value not in known for value in given.values()):
        raise ConfigError(
            f"tool_policies={given!r}: expected a mapping of tool names or patterns to "
            '"mask", "summarize" or "keep", or one of "keep_all", "keep_none"'
        )
    return {str(name): value for name, value in given.items()}


def _fact_tools(given: Any) -> dict[str, str]:
    """Check what tools do; return it as a dictionary."""
    known = (*FILE_ACTIONS, *OTHER_ACTIONS)
    sound = isinstance(given, Mapping) and all(
        isinstance(rule, str) and rule.partition(":")[0] in known and not rule.endswith(":")
        for rule in given.values()
    )
    if not sound:
        raise ConfigError(
            f"fact_tools={given!r}: expected a mapping of tool names or patterns to one of "
            f'{", ".join(known)}, with ":" and the argument that names it where it is unusual'
        )
    return {str(name): rule for name, rule in given.items()}


def _fact_patterns(given: Any) -> dict[str, str]:
    """Kinds of identifiers with their expressions, checked."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"fact_patterns={given!r}: expected a mapping of kinds to expressions")
    for kind, pattern in given.items():
        try:
            matches_nothing = re.compile(pattern).match("") is not None
        except (re.error, TypeError) as error:
            raise ConfigError(f"fact_patterns: {kind!r}: {pattern!r}: {error}") from error
        if matches_nothing:
            raise ConfigError(f"fact_patterns: {kind!r}: {pattern!r} also finds the empty text")
    return {str(kind): str(pattern) for kind, pattern in given.items()}


def _check_prompt(given: Any) -> None:
    """Refuse a request template with a missing or unknown field.

    Without a field, earlier summaries would be lost or an option would do nothing.
    """
    if given is None:
        return
    fields = " ".join(f"{{{name}}}" for name in PROMPT_FIELDS)
    try:
        found = {name for _, name, _, _ in string.Formatter().parse(given) if name is not None}
        wrong = [f"no field {{{name}}}" for name in PROMPT_FIELDS if name not in found]
        wrong += [f"unknown field {{{name}}}" for name in sorted(found - {*PROMPT_FIELDS})]
        if not wrong:
            given.format(**dict.fromkeys(PROMPT_FIELDS, ""))
            return
    except (TypeError, ValueError, LookupError) as error:
        wrong = [str(error)]
    raise ConfigError(
        f"summary_prompt: {wrong[0]}; it must have {fields}, braces of its own doubled"
    )


STORES = "sqlite:///path, postgresql://user@host/database, or a path"
STORE_KINDS = ("sqlite", "sqlite+pysqlite", "postgres", "postgresql", "postgresql+psycopg")
"""What a store's URL may have before its `://`."""


def check_store(url: str | None) -> None:
    """Refuse a store's URL of a kind that is not supported.

    Raises:
        ConfigError: its text leaves the URL out, which may hold a password.
    """
    kind, named, _ = str(url or "").partition("://")
    if named and kind not in STORE_KINDS:
        raise ConfigError(f"store_url: a store of the kind {kind!r}; expected {STORES}")


def _texts(name: str, given: Any) -> tuple[str, ...]:
    """Check a list of texts: one text would be read by letters."""
    sound = isinstance(given, (list, tuple)) and all(isinstance(p, str) and p for p in given)
    if not sound:
        raise ConfigError(f"{name}={given!r}: expected a list of texts that are not empty")
    return tuple(given)
