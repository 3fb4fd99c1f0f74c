"""Define every option with its default, check and meaning.

Only this module reads options from the environment.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, NoReturn

from .errors import ConfigError

MOST_TOKENS = 10**12
"""Upper bound of an option's tokens; the ratios of larger numbers overflow."""

MOST_LISTED = 15
"""Upper bound of the known names that the error for an unknown name lists."""

HOUR_SECONDS = 3_600.0

STORE_VARIABLE = "PRAISON_COMPRESSOR_STORE"
KEY_VARIABLE = "PRAISONAI_SESSION_KEY"
"""The host's variable for its `EncryptedSessionStore`."""

AUXILIARY_VARIABLE = "PRAISONAI_AUXILIARY_MODEL"
"""The host's variable for all its auxiliary calls."""

STORES = "sqlite:///path, postgresql://user@host/database, or a path"
STORE_KINDS = ("sqlite", "sqlite+pysqlite", "postgres", "postgresql", "postgresql+psycopg")
"""Supported kinds of stores: the part of a URL before `://`."""


def short_repr(value: Any) -> str:
    """Return a value's text for an error, in at most 60 characters."""
    try:
        text = repr(value)
    except ValueError:  # Python prints no number of more than 4,300 digits
        return f"a {type(value).__name__} too large to print"
    return text if len(text) <= 60 else f"{text[:60]}…"


# -------------------------------------------------------------- checks

OptionCheck = Callable[[str, Any], Any]
"""Return the option's normalized value, or raise ConfigError."""


def make_check(wanted: str, is_valid: Callable[[Any], object]) -> OptionCheck:
    """Return a check that passes values for which `is_valid` is true."""

    def check(name: str, value: Any) -> Any:
        try:
            if is_valid(value):
                return value
        except (TypeError, ValueError, OverflowError, AttributeError):
            pass  # a value of another type
        raise ConfigError(f"{name}={short_repr(value)}: expected {wanted}")

    return check


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and float(value) == value


def _is_whole(value: Any, least: int = 0) -> bool:
    return _is_number(value) and int(value) == value and least <= value <= MOST_TOKENS


_COUNT = make_check("a whole number, 0 or more", _is_whole)
_POSITIVE = make_check("a positive whole number", lambda v: _is_whole(v, 1))
_RATIO = make_check("a number above 0 and up to 1", lambda v: _is_number(v) and 0 < v <= 1)
_GAIN = make_check("a number from 0 up to 1", lambda v: _is_number(v) and 0 <= v < 1)
# Python's clocks wait at most about 292 years.
_SECONDS = make_check("a positive number up to 1e9", lambda v: _is_number(v) and 0 < v <= 1e9)
SWITCH = make_check("True or False", lambda v: isinstance(v, bool))
TEXT = make_check("a text", lambda v: isinstance(v, str))

_LONGEST_NAME = 1_000  # bytes; PostgreSQL indexes no key of more than 2,700 bytes
_STORABLE = re.compile("[^\0\ud800-\udfff]+")

NAME = make_check(
    f"a name of 1 to {_LONGEST_NAME:,} bytes in UTF-8, without NUL",
    lambda v: _STORABLE.fullmatch(v) and v.strip() and len(v.encode()) <= _LONGEST_NAME,
)
"""Check the name of a session or namespace."""


def check_store(url: str | None) -> None:
    """Raise ConfigError for a store's URL of an unknown kind.

    The error omits the URL, which may hold a password.
    """
    kind, named, _ = str(url or "").partition("://")
    if named and kind not in STORE_KINDS:
        raise ConfigError(f"store_url: a store of the kind {kind!r}; expected {STORES}")


_PATH = make_check(STORES, lambda v: isinstance(os.fspath(v), str) and os.fspath(v))


def _as_text_url(name: str, value: Any) -> str:
    # The kind is checked where the store is opened: an agent with an unknown kind in its
    # environment goes on in memory.
    return str(os.fspath(_PATH(name, value)))


def check_texts(name: str, value: Any) -> tuple[str, ...]:
    """Return the texts as a tuple; refuse a single text."""
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) and item for item in value):
        return tuple(value)
    raise ConfigError(f"{name}={short_repr(value)}: expected a list of texts that are not empty")


POLICIES = ("mask", "summarize", "keep")
_FOR_ALL = {"keep_all": {"*": "keep"}, "keep_none": {"*": "mask"}}


class ToolPolicies(dict[str, str]):
    """Hold policies by tool name or pattern, read-only and hashable.

    A dictionary, so that `dataclasses.asdict` and `json.dumps` take it.
    """

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("tool_policies are read-only; dataclasses.replace makes a configuration")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickling a dictionary sets its items, which `_refuse` would refuse.
        return ToolPolicies, (dict(self),)


def _check_policies(name: str, value: Any) -> ToolPolicies:
    if isinstance(value, str) and value in _FOR_ALL:
        return ToolPolicies(_FOR_ALL[value])
    if isinstance(value, Mapping) and all(policy in POLICIES for policy in value.values()):
        return ToolPolicies({str(tool): policy for tool, policy in value.items()})
    raise ConfigError(
        f"{name}={short_repr(value)}: expected a mapping of tool names or patterns to "
        '"mask", "summarize" or "keep", or one of "keep_all", "keep_none"'
    )


# -------------------------------------------------------------- options


def _option(
    default: Any, check: OptionCheck, meaning: str, *, secret: bool = False, nullable: bool = False
) -> Any:
    """Declare an option; None is valid if `nullable` or the default."""
    metadata = {"check": check, "meaning": meaning, "nullable": nullable or default is None}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, repr=not secret, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class CompressorConfig:
    """Hold the options of a `ContextCompressor`; `meanings()` describes them.

    Raises:
        ConfigError: an option has a value that cannot work.
    """

    model: str | None = _option(
        None,
        TEXT,
        "Model that reads the view, for its window and vocabulary. None: vocabulary o200k_base.",
    )
    context_window: int | None = _option(
        None, _POSITIVE, "Tokens of the model's window. None: litellm's table, else a logged guess."
    )
    output_reserve: int | None = _option(
        None, _COUNT, "Tokens kept free for the answer. None: 8,000, or window / 4 if that is less."
    )
    trigger_ratio: float = _option(0.8, _RATIO, "Compress above this share of the usable window.")
    target_ratio: float = _option(0.6, _RATIO, "Compress down to this share of the trigger.")
    idle_trigger_ratio: float = _option(
        0.5, _RATIO, "Once the cache is cold, compress above this share of the trigger."
    )
    cache_ttl_seconds: float | None = _option(
        None,
        _SECONDS,
        "Lifetime of the provider's cache. From 3,600 on, an agent's cache marks ask for an hour. "
        "None: by provider and cache marks, else 300.",
    )
    token_floor: int = _option(
        2_000, _COUNT, "Least tokens of the trigger; force and target_tokens ignore it."
    )
    protect_last_n_tokens: int = _option(
        20_000,
        _COUNT,
        "Newest tokens kept verbatim, where they fit. At 20,000 or more, the tail gets at least "
        "half of (target - head).",
    )
    keep_recent_turns: int | None = _option(
        None, _COUNT, "Newest turns kept verbatim too, where they fit."
    )
    head_tokens: int | None = _option(
        None,
        _COUNT,
        "Most tokens of the first exchange; the task always stays. None: 10 % of the usable "
        "window.",
    )
    summary_target_tokens: int | None = _option(
        750,
        _POSITIVE,
        "Tokens of prose asked of the model. None: 5 % of the segment, 750 to 8,000.",
        nullable=True,
    )
    quotes_budget_tokens: int | None = _option(
        None, _COUNT, "Tokens of quotes. None: max(target / 10, min(3,000, target / 8))."
    )
    pinned: tuple[str, ...] = _option(
        (), check_texts, "Texts that stand in every compressed view, word for word."
    )
    rule_sources: tuple[str, ...] = _option(
        (),
        check_texts,
        "Files (path, name or pattern) and tools whose newest content is quoted, like AGENTS.md.",
    )
    # At 0.25 the static text of round 7 lost 8 of 20 files (tests/benchmarks/rounds.py).
    fold_ratio: float = _option(
        0.28,
        _RATIO,
        "Fold all summaries into one when they exceed this share of the target by more than the "
        "next summary needs.",
    )
    min_gain_ratio: float = _option(
        0.05, _GAIN, "Skip a compression that frees less than this share of the view."
    )
    tool_policies: Mapping[str, str] = _option(
        {},
        _check_policies,
        'What is done with old outputs, by tool or pattern: "mask", "summarize", "keep". Without a '
        "policy, outputs are masked if a model summarizes.",
    )
    recall: bool | None = _option(
        None, SWITCH, "Offer the archive as tools. None: in the host, to agents with tools."
    )
    background: bool = _option(False, SWITCH, "Write summaries off the request path.")
    keep_tool_steps: bool = _option(
        True, SWITCH, "In the host: keep the tool steps of earlier turns in the transcript."
    )
    auxiliary_model: str | None = _option(
        None,
        TEXT,
        f"Model that writes summaries. None: {AUXILIARY_VARIABLE}, else the host agent's own.",
    )
    auxiliary_api_base: str | None = _option(
        None, TEXT, "Address of the auxiliary model. None: its provider's."
    )
    auxiliary_api_key: str | None = _option(
        None, TEXT, "Key of the auxiliary model. None: litellm's environment.", secret=True
    )
    fallback_models: tuple[str, ...] = _option(
        (), check_texts, "Models tried in order when the auxiliary model fails."
    )
    summary_instructions: str | None = _option(
        None, TEXT, "Your text, added to the request for a summary."
    )
    summary_max_retries: int = _option(
        2, _COUNT, "Retries with one model after a temporary failure."
    )
    timeout_seconds: float = _option(60.0, _SECONDS, "Seconds for one call of a model.")
    store_url: str | None = _option(
        None,
        _as_text_url,
        f"SQLite, PostgreSQL or a path. None: {STORE_VARIABLE}, else memory; in the host SQLite "
        "where the session is on disk.",
    )
    store_key: str | None = _option(
        None, TEXT, f"Fernet key of an encrypted store. None: {KEY_VARIABLE}.", secret=True
    )
    redact_secrets: bool | None = _option(
        None,
        SWITCH,
        "Redact keys and tokens. None: on disk, and for an auxiliary model other than the agent's.",
    )
    namespace: str = _option("default", NAME, "Tenant; nothing is looked up across namespaces.")

    def __new__(cls, *args: Any, **options: Any) -> CompressorConfig:
        """Raise ConfigError for an unknown option."""
        if unknown := sorted(options.keys() - set(cls.names())):
            raise ConfigError(unknown_name("option", unknown[0], cls.names()))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if value is not None or not option.metadata["nullable"]:
                checked = option.metadata["check"](option.name, value)
                object.__setattr__(self, option.name, checked)
        window, reserve = self.context_window, self.output_reserve
        if window is not None and reserve is not None and reserve >= window:
            raise ConfigError(
                f"output_reserve={reserve}: leaves nothing of context_window={window}; lower "
                "output_reserve or raise context_window"
            )

    @property
    def mark_ttl(self) -> str | None:
        """The `ttl` of cache marks: "1h", or None for the provider's default."""
        return "1h" if (self.cache_ttl_seconds or 0) >= HOUR_SECONDS else None

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all options."""
        return tuple(option.name for option in fields(cls))

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """Return what each option means, in one sentence."""
        return {option.name: option.metadata["meaning"] for option in fields(cls)}

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> CompressorConfig:
        """Return the configuration of a dictionary, as YAML or JSON give it.

        Raises:
            ConfigError: there is no option of that name, or its value cannot work.
        """
        if not isinstance(options, Mapping):
            raise ConfigError(f"options is {type(options).__name__}; expected a mapping")
        return cls(**{str(name): value for name, value in options.items()})

    def with_environment(self, environ: Mapping[str, str] | None = None) -> CompressorConfig:
        """Return this configuration with unset options from the environment."""
        environ = os.environ if environ is None else environ
        url = self.store_url or environ.get(STORE_VARIABLE) or None
        key = self.store_key or environ.get(KEY_VARIABLE) or None
        model = self.auxiliary_model or environ.get(AUXILIARY_VARIABLE, "").strip() or None
        return replace(self, store_url=url, store_key=key, auxiliary_model=model)


# For `help`: a field's metadata are not shown there.
CompressorConfig.__doc__ = "\n".join(
    (
        inspect.cleandoc(CompressorConfig.__doc__ or ""),
        "\nOptions:",
        *(f"    {name}: {meaning}" for name, meaning in CompressorConfig.meanings().items()),
    )
)


# -------------------------------------------------------------- names and values of a call


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest in spelling, or None."""
    names = sorted(known)
    wanted = name.lower()
    words = [(n, option, word) for option in names for n, word in enumerate(option.split("_"))]
    # The last of equal words wins: the earliest in its name, then alphabetically.
    by_word = {word: option for _, option, word in sorted(words, reverse=True)}
    for candidates in (dict(zip(names, names, strict=True)), by_word):
        close = get_close_matches(wanted, candidates, cutoff=0.75)
        close.sort(key=lambda near: sorted(near) != sorted(wanted))  # swapped letters first
        if close:
            return candidates[close[0]]
    return None


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return an error's text with the nearest name, or all if few."""
    names = list(known)
    meant = nearest_name(name, names)
    listed = f"; expected one of {', '.join(names)}" if len(names) <= MOST_LISTED else ""
    return f"no {kind} {name!r}" + (f" (did you mean {meant!r}?)" if meant else listed)


def whole_number(name: str, value: Any, least: int = -MOST_TOKENS) -> int:
    """Return a call's option as an integer.

    Raises:
        ConfigError: the value is no whole number, or out of range.
    """
    span = f"up to {MOST_TOKENS:,}" if least < 0 else f"from {least:,} to {MOST_TOKENS:,}"
    check = make_check(f"a whole number {span}", lambda v: _is_whole(v, least))
    return int(check(name, value))
