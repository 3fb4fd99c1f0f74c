"""Define a call's checked input, `Request`, and its output, `CompressResult`."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
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
from ..ledger.segments import Segment, Session, Usage
from ..ledger.stores import Store
from ..messages import Message, to_plain
from ..messages.transcript import as_list
from ..recall.answers import api_of, schemas_for
from ..summaries.protocol import SegmentText, Summarizer
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits, prices_of
from ..view.budget import Budget
from ..view.frame import pinned_message
from ..view.view import AddedMessage, View
from .bills import Bill


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


class Mode(Enum):
    """What a request records, and who waits for the model."""

    COMMIT = "commit"
    """Commits are recorded; the caller waits for the model."""
    BACKGROUND = "background"
    """Commits are recorded; summaries are written off the request path."""
    READ_ONLY = "read only"
    """Nothing is recorded; a model is asked only for a preview with written texts."""


SessionKey = tuple[str, str]
"""Namespace and session."""

Choice = str | int
"""A message that the user names: by reference, as s2.14, or by index in the caller's list."""


@dataclass(frozen=True)
class Request:
    """The checked input of one call."""

    messages: Sequence[Any]
    """The messages as they came."""
    mode: Mode
    config: CompressorConfig
    budget: Budget
    """Limits of the view. The tokens of the pinned texts are already subtracted."""
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
    """The framed message of the pinned texts."""
    keep: tuple[Choice, ...] = ()
    """Messages that the user keeps."""
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
        """Return the messages to keep, then the ends of the range."""
        return *self.keep, self.since, self.until

    @property
    def has_choices(self) -> bool:
        """Whether the call names messages to keep, or a range."""
        return bool(self.keep) or self.has_range

    @property
    def is_recorded(self) -> bool:
        """Whether the session remembers this request."""
        return self.mode is not Mode.READ_ONLY

    @property
    def has_range(self) -> bool:
        """Whether the call names a range to summarize."""
        return self.since is not None or self.until is not None

    @property
    def instructions_digest(self) -> str:
        """Return a digest of the requested model, length and instructions."""
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
    """Read the requests of one compressor from the arguments of its calls."""

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
            mode = Mode.READ_ONLY
        name = getattr(self.summarizer, "model", None)  # of any type, on a user's object
        return Request(
            messages=list(as_list(messages)),
            mode=mode or (Mode.BACKGROUND if in_background else Mode.COMMIT),
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
        """Return the configuration with a call's own values, checked."""
        names = ("protect_last_n_tokens", "summary_target_tokens")
        own: dict[str, Any] = {name: value for name, value in options.items() if name in names}
        return replace(self.config, **own) if own else self.config

    def _pinned_message(self, options: Options) -> AddedMessage | None:
        """Return the framed message of all pinned texts, or None without any."""
        texts = tuple(dict.fromkeys((*self.config.pinned, *(options.get("pinned") or ()))))
        if not texts:
            return None
        message = pinned_message(texts)
        return AddedMessage(message, self.tokens.message(message))

    def _budget(
        self, options: Options, config: CompressorConfig, pinned: AddedMessage | None
    ) -> Budget:
        """Return the budget of a call, by the window or by `target_tokens`."""
        beside = self.tokens.messages([]) + (pinned.tokens if pinned else 0)
        target = options.get("target_tokens")
        if target is not None:
            exact = Budget.exactly(config, whole_number("target_tokens", target, 1), beside)
            return replace(exact, beside="pinned texts" if pinned else "")
        window = model_limits(config.model, config.context_window).window
        overhead = whole_number("overhead_tokens", options.get("overhead_tokens", 0), 0)
        return Budget.of(config, window, overhead + beside)

    def read_only(self, messages: Sequence[Any], session_id: str | None) -> Request:
        """Return a request with messages of a session; it records nothing."""
        return self.read(messages, {"session_id": session_id}, Mode.READ_ONLY)

    def read_resume(
        self, messages: Sequence[Any], session_id: str | None, token_budget: int | None
    ) -> Request:
        """Return a request with a session's messages, bounded by `token_budget` if given."""
        options: Options = {"session_id": session_id}
        if token_budget is None:
            return self.read(messages, options, Mode.READ_ONLY)
        options["target_tokens"] = whole_number("token_budget", token_budget, 1)
        request = self.read(messages, options, Mode.READ_ONLY)
        return replace(request, budget=replace(request.budget, bound="token_budget"))

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
"""Checks of the options that no later step checks. None is accepted for each of them."""


def check_call_options(options: Options) -> Options:
    """Return the options that are not None, or raise ConfigError."""
    unknown = sorted(set(options) - set(Options.__annotations__))
    if unknown:
        raise ConfigError(unknown_name("option of a call", unknown[0], Options.__annotations__))
    named = {name: value for name, value in options.items() if value is not None}
    for name in OPTION_CHECKS.keys() & named:
        OPTION_CHECKS[name](name, named[name])
    return cast("Options", named)


def check_constructor(config: Any, store: Any, tokens: Any, **functions: Any) -> None:
    """Raise ConfigError for a compressor's argument of a wrong type."""
    mapping = "a CompressorConfig; CompressorConfig.from_mapping takes a dictionary"
    url = "a store; a URL belongs in CompressorConfig(store_url=...)"
    for name, value, fits, wanted in (
        ("config", config, isinstance(config, CompressorConfig), mapping),
        ("store", store, isinstance(store, Store), url),
        ("tokens", tokens, isinstance(tokens, TokenCounter), "a TokenCounter"),
        *((name, given, callable(given), "a function") for name, given in functions.items()),
    ):
        if value is not None and not fits:
            raise ConfigError(f"{name} is {type(value).__name__}; expected {wanted}")


# -------------------------------------------------------------- what a call returns

ContextStatus = Literal["full", "masked", "summarized"]
SummaryMethod = Literal["model", "static", "reused"]


@dataclass(frozen=True)
class CompressResult:
    """The view to send, with counts in tokens of its model."""

    # Not in `repr`: `asyncio.run` builds it, which takes a sixth of the counting time.
    messages: list[Message] = field(repr=False)
    """The view: the messages to send."""
    context_status: ContextStatus
    """ "full", "masked" or "summarized"."""
    tokens_before: int
    """Tokens of the given messages, as they came."""
    tokens_after: int
    """Tokens of `messages`, with the opening of a request."""
    session_id: str
    """The newest epoch's id. Each epoch's id and the stable id name the session in later calls."""
    parent_session_id: str | None
    """Id of the previous epoch, or of the forked epoch; None in a new session."""
    summary_method: SummaryMethod | None
    """ "model" or "static" if this call wrote a summary, "reused" if the ledger had one. "static"
    also while a placeholder replaces a summary that is still being written."""
    usage: Usage = field(default_factory=Usage)
    """Cost of the auxiliary model in this call, and in the background since the call before."""
    segments: tuple[Segment, ...] = field(default=(), repr=False)
    """The summaries of the view, in order."""
    masked: int = 0
    """Tool outputs that the view shows as one line, or as their first and last lines."""
    newly_masked: int = 0
    """Those of `masked` that this call recorded."""
    newly_summarized: int = 0
    """Messages that summaries of this call replace."""
    summarized_by_model: int = 0
    """Those of `newly_summarized` whose summary has a model's prose. The other new summaries
    contain quotes only."""
    vetoed: bool = False
    """Whether a hook refused a compression. `messages` still fit the window; an unrecorded static
    text may replace some."""
    redacted_secrets: int = 0
    """Keys and tokens redacted in the archived originals of the view."""
    written: tuple[SegmentText, ...] = field(default=(), repr=False)
    """Summaries that this call recorded."""
    model: str | None = None
    """The model that reads the view."""
    bill: Bill | None = field(default=None, compare=False)
    """The session's cost. Requests count only after `record_usage`."""
    recall_tools: tuple[Callable[..., str], ...] = field(default=(), repr=False, compare=False)
    """Two functions to give to the model as tools: they search and read the archive. () while the
    view leaves nothing out. `recall_schemas` describes them to the model."""

    def __getstate__(self) -> dict[str, Any]:
        # The tools hold a store: another process has its own.
        return {**vars(self), "recall_tools": ()}

    @property
    def recall_schemas(self) -> list[dict[str, Any]]:
        """Return the recall tools in the form of the messages' calls.

        Before the first call the form is unknown: call `recall_schemas_for(api)`.
        """
        return self.recall_schemas_for(api_of(self.messages))

    def recall_schemas_for(self, api: str) -> list[dict[str, Any]]:
        """Return the recall tools in the form of "chat", "messages" or "responses"."""
        return schemas_for(api) if self.recall_tools else []

    @property
    def tokens_saved(self) -> int:
        """Return the tokens of the given messages less those of the view."""
        return self.tokens_before - self.tokens_after

    @property
    def cost_saved(self) -> float | None:
        """Return the US dollars saved by each request; None if unknown."""
        return _dollars_for(self.tokens_saved, prices_of(self.model).input)

    @property
    def cost_saved_cached(self) -> float | None:
        """Return `cost_saved` at the price of cached input: a lower bound."""
        return _dollars_for(self.tokens_saved, prices_of(self.model).cached)


def result_of(
    request: Request,
    view: View,
    tokens: TokenCounter,
    *,
    before: Session | None = None,
    texts: Sequence[SegmentText] = (),
    is_shortened: bool = False,
) -> CompressResult:
    """Return the result with a view.

    Args:
        before: the session before this call's commit; None: nothing was committed.
        texts: the summaries of that commit.
        is_shortened: whether fixed messages were shortened; the status is then at least "masked".
    """
    segments = view.summaries()
    masked = len(view.all_tiles) - len(segments)
    entries = view.session.entries
    new = [entry.segment for entry in entries[len(before.entries) :]] if before else []
    summaries = [segment for segment in new if segment.kind == "summary"]
    return CompressResult(
        messages=view.messages(),
        context_status="summarized" if segments else "masked" if masked or is_shortened else "full",
        tokens_before=view.given_tokens,
        tokens_after=view.size() + view.pinned_tokens + tokens.messages([]),
        session_id=view.session.tip,
        parent_session_id=view.session.parent,
        summary_method=_summary_method(view, texts, before),
        usage=usage_of(texts),
        # Copies, because an application may edit its result.
        segments=tuple(replace(s, rendered=to_plain(s.rendered)) for s in segments),
        masked=masked,
        newly_masked=sum(segment.replaces_result for segment in new),
        newly_summarized=sum(len(segment.run) for segment in summaries),
        summarized_by_model=sum(len(s.run) for s in summaries if s.method == "model"),
        redacted_secrets=sum(tile.segment.secrets for tile in view.all_tiles),
        written=tuple(texts),
        model=request.config.model,
    )


def usage_of(texts: Sequence[SegmentText]) -> Usage:
    """Return the cost of the texts."""
    return functools.reduce(Usage.__add__, (text.usage for text in texts), Usage())


def add_cost(unreported: Usage, texts: Sequence[SegmentText]) -> tuple[SegmentText, ...]:
    """Return the texts; add the unreported cost to the first."""
    charged = [replace(text, usage=text.usage + unreported) for text in texts[:1]]
    return (*charged, *texts[1:])


def _summary_method(
    view: View, texts: Sequence[SegmentText], before: Session | None
) -> SummaryMethod | None:
    earlier = [entry.segment.rendered for entry in before.entries] if before else []
    methods = {text.method for text in texts if text.message not in earlier}
    if methods:
        return "model" if "model" in methods else "static"
    segments = view.summaries()
    # A placeholder's text is recorded nowhere.
    unrecorded = view.segments[len(view.session.entries) :]
    if any(s is t for s in segments for t in unrecorded):
        return "static"
    return "reused" if segments else None


def _dollars_for(tokens: int, price: float | None) -> float | None:
    return None if price is None else tokens * price
