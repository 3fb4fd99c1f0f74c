"""`Request`: the checked input of one call. `RequestReader` makes and checks requests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, cast

from ..config import (
    NAME,
    SWITCH,
    TEXT,
    CompressorConfig,
    OptionCheck,
    check_texts,
    make_check,
    unknown_name,
    whole_number,
)
from ..errors import ConfigError
from ..ledger.stores import Store
from ..messages.transcript import as_list
from ..summaries.protocol import Summarizer
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits
from ..view.budget import Budget
from ..view.frame import pinned_message
from ..view.view import AddedMessage


class Options(TypedDict, total=False):
    """The keywords of `ContextCompressor.compress`, whose docstring explains them."""

    protect_last_n_tokens: int | None
    summary_target_tokens: int | None
    auxiliary_model: str | None
    session_id: str | None
    parent_session_id: str | None
    target_tokens: int | None
    force: bool
    overhead_tokens: int
    extends: bool
    pinned: Sequence[str] | None
    keep: Sequence[str | int] | None
    since: str | int | None
    until: str | int | None


Mode = Literal["commit", "background", "read only"]
"""What a request records, and who waits for the model.

"commit": commits are recorded; the caller waits for the model. "background": commits are recorded;
summaries are written off the request path. "read only": nothing is recorded; only a preview with
`write` asks a model.
"""


SessionKey = tuple[str, str]
"""Namespace and session."""

Choice = str | int
"""A message that the user names: by reference, as s2.14, or by index in the caller's list."""


@dataclass(frozen=True)
class Request:
    """The checked input of one call."""

    messages: Sequence[Any]
    mode: Mode
    config: CompressorConfig
    budget: Budget
    """Limits of the view, without the pinned texts."""
    key: SessionKey
    parent_id: str | None = None
    auxiliary_model: str | None = None
    """The model that this call names for its summaries."""
    writer: str | None = None
    """The model that writes summaries; None: unknown, or no model."""
    force: bool = False
    wants_compression: bool = False
    """Whether the caller asks for a compression whatever it costs."""
    pinned: AddedMessage | None = None
    keep: tuple[Choice, ...] = ()
    since: Choice | None = None
    """First message of the range to summarize."""
    until: Choice | None = None
    """First message after the range to summarize."""
    overhead_tokens: int = 0
    """Tokens of the provider's request beside the messages."""
    is_cold: bool = False
    """Whether the provider's cache has lost the session's last request."""

    @property
    def choices(self) -> tuple[Choice | None, ...]:
        """The messages to keep, then the ends of the range."""
        return *self.keep, self.since, self.until

    @property
    def has_choices(self) -> bool:
        """Whether the call names messages to keep, or a range."""
        return bool(self.keep) or self.has_range

    @property
    def is_recorded(self) -> bool:
        """Whether the session remembers this request."""
        return self.mode != "read only"

    @property
    def has_range(self) -> bool:
        """Whether the call names a range to summarize."""
        return self.since is not None or self.until is not None

    @property
    def instructions_digest(self) -> str:
        """Digest of the requested model, length and instructions."""
        config = self.config
        asked = (self.auxiliary_model or config.auxiliary_model, config.summary_target_tokens)
        text = repr((*asked, config.summary_instructions))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def with_instructions(self, words: str) -> Request:
        """Return the request with more instructions to the model that summarizes."""
        more = "\n".join(filter(None, (self.config.summary_instructions, words)))
        return replace(self, config=replace(self.config, summary_instructions=more))


@dataclass(frozen=True)
class RequestReader:
    """Make the requests of one compressor from its calls' arguments."""

    config: CompressorConfig
    tokens: TokenCounter
    session_id: str
    """The session of calls that name none."""
    summarizer: Summarizer | None

    def read(self, messages: Sequence[Any], options: Options, mode: Mode | None = None) -> Request:
        """Return a call's request.

        Without `mode`, the options determine the mode.

        Raises:
            ConfigError: an option has a value that cannot work.
            InvalidMessages: not a list of chat messages.
        """
        options = check_call_options(options)
        config = self._config_with(options)
        writer = options.get("auxiliary_model") or config.auxiliary_model
        has_model = bool(self.summarizer or writer)
        pinned = self._pinned_message(options)
        budget = self._budget(options, config, pinned)
        is_bounded = bool({"since", "until", "target_tokens"} & options.keys())
        wants_compression = bool(options.get("force") or options.get("keep")) or is_bounded
        in_background = config.background and has_model and not wants_compression
        if mode is None and not options.get("extends", True):
            mode = "read only"
        name = getattr(self.summarizer, "model", None)  # a user's object may have any type here
        return Request(
            messages=list(as_list(messages)),
            mode=mode or ("background" if in_background else "commit"),
            config=config,
            budget=replace(budget, has_model=has_model),
            key=(config.namespace, options.get("session_id") or self.session_id),
            parent_id=options.get("parent_session_id"),
            auxiliary_model=options.get("auxiliary_model"),
            writer=writer or (name if isinstance(name, str) else None),
            force=options.get("force", False),
            wants_compression=wants_compression,
            pinned=pinned,
            keep=tuple(options.get("keep") or ()),
            since=options.get("since"),
            until=options.get("until"),
            overhead_tokens=options.get("overhead_tokens", 0),
        )

    def _config_with(self, options: Options) -> CompressorConfig:
        names = ("protect_last_n_tokens", "summary_target_tokens")
        own: dict[str, Any] = {name: value for name, value in options.items() if name in names}
        return replace(self.config, **own) if own else self.config

    def _pinned_message(self, options: Options) -> AddedMessage | None:
        texts = tuple(dict.fromkeys((*self.config.pinned, *(options.get("pinned") or ()))))
        if not texts:
            return None
        message = pinned_message(texts)
        return AddedMessage(message, self.tokens.message(message))

    def _budget(
        self, options: Options, config: CompressorConfig, pinned: AddedMessage | None
    ) -> Budget:
        beside = self.tokens.messages([]) + (pinned.tokens if pinned else 0)
        target = options.get("target_tokens")
        if target is not None:
            exact = Budget.exactly(config, whole_number("target_tokens", target, 1), beside)
            return replace(exact, beside="pinned texts" if pinned else "")
        window = model_limits(config.model, config.context_window).window
        overhead = whole_number("overhead_tokens", options.get("overhead_tokens", 0), 0)
        return Budget.of(config, window, overhead + beside)

    def read_only(self, messages: Sequence[Any], session_id: str | None) -> Request:
        """Return a request that records nothing."""
        return self.read(messages, {"session_id": session_id}, "read only")

    def key(self, session_id: str | None) -> SessionKey:
        """Return the namespace and the session id of a call."""
        options = check_call_options({"session_id": session_id})
        return self.config.namespace, options.get("session_id") or self.session_id


# -------------------------------------------------------------- checks


def _is_choice(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


_CHOICE = make_check("a reference such as s2.14, or an index", _is_choice)
_CHOICES = make_check(
    "a list of references such as s2.14 or of indices",
    lambda v: isinstance(v, (list, tuple)) and all(map(_is_choice, v)),
)

OPTION_CHECKS: Mapping[str, OptionCheck] = {
    "session_id": NAME,
    "parent_session_id": NAME,
    "auxiliary_model": TEXT,
    "force": SWITCH,
    "extends": SWITCH,
    "pinned": check_texts,
    "keep": _CHOICES,
    "since": _CHOICE,
    "until": _CHOICE,
}
"""Checks of options that are not None; later steps check the other options."""


def check_call_options(options: Options) -> Options:
    """Return the options that are not None, or raise ConfigError."""
    unknown = sorted(set(options) - set(Options.__annotations__))
    if unknown:
        raise ConfigError(unknown_name("option", unknown[0], Options.__annotations__))
    named = {name: value for name, value in options.items() if value is not None}
    for name in OPTION_CHECKS.keys() & named:
        OPTION_CHECKS[name](name, named[name])
    return cast("Options", named)


def check_constructor(config: Any, store: Any, tokens: Any, **functions: Any) -> None:
    """Raise ConfigError for a compressor's argument of a wrong type."""
    mapping = "a CompressorConfig; CompressorConfig.from_mapping takes a dictionary"
    url = "a store; a URL belongs in CompressorConfig(store_url=...)"
    check_argument("config", config, isinstance(config, CompressorConfig), mapping)
    check_argument("store", store, isinstance(store, Store), url)
    check_argument("tokens", tokens, isinstance(tokens, TokenCounter), "a TokenCounter")
    for name, function in functions.items():
        check_argument(name, function, callable(function), "a function")


def check_argument(name: str, value: Any, fits: bool, wanted: str) -> None:
    """Raise ConfigError for a value that is neither None nor fitting."""
    if value is not None and not fits:
        raise ConfigError(f"{name} is {type(value).__name__}; expected {wanted}")
