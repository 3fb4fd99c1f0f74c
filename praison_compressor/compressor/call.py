"""Parse: one request to compress, what a caller may ask and what is seen of it."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, cast

from ..config import CompressorConfig, whole
from ..errors import ConfigError
from ..ledger.segments import Session
from ..messages import Message, Transcript, read
from ..messages.digests import MessageCache, Originals, Seen
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits
from ..view.budget import Budget
from ..view.layout import Layout


class Options(TypedDict, total=False):
    """The keywords of `ContextCompressor.compress`; what each means stands there."""

    protect_last_n_tokens: int | None
    summary_target_tokens: int | None
    auxiliary_model: str | None
    session_id: str | None
    parent_session_id: str | None
    target_tokens: int | None
    force: bool
    overhead_tokens: int
    extends: bool
    tools: Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True)
class Reading:
    """A list of messages, read once. All but `own` are private copies: an agent may edit its
    messages while a model writes, and what is archived must be what was digested."""

    own: Sequence[Message]
    """The caller's messages as they may be sent; those that had to be repaired are copies."""
    transcript: Transcript
    seen: Sequence[Seen]
    """What is known of each message of the transcript."""
    given: Originals
    """The list as it came."""
    is_as_given: bool
    """Whether nothing had to be repaired."""

    @classmethod
    def of(cls, messages: Sequence[Any], cache: MessageCache) -> Reading:
        """The reading of a list that nobody else changes.

        Raises:
            InvalidMessages: not a list of chat messages.
        """
        found = read(messages)
        own, seen = found.messages, cache.all(found.messages)
        as_given = len(own) == len(messages) and all(map(operator.is_, own, messages))
        return cls(
            own=own,
            transcript=replace(found, messages=tuple(each.plain for each in seen)),
            seen=seen,
            given=Originals(seen if as_given else cache.all(messages)),
            is_as_given=as_given,
        )


@dataclass(frozen=True)
class CompressCall:
    """One request to compress, read and budgeted."""

    reading: Reading
    config: CompressorConfig
    budget: Budget
    key: tuple[str, str]
    """Namespace and session."""
    parent_id: str | None
    model: str | None
    force: bool
    extends: bool
    pays: bool
    """Whether a model is there to be paid for a summary."""
    tools: tuple[Mapping[str, Any], ...] | None = None
    """The schemas sent along; None: not told, so that nothing can be asked on the prefix."""

    def after_excerpts(self) -> CompressCall:
        """The call once its large results are dealt with."""
        return replace(self, budget=replace(self.budget, large=None))

    @property
    def is_asked_now(self) -> bool:
        """Whether somebody waits for a view that is as small as this call says."""
        return self.force or self.budget.limit == self.budget.target

    def instructed(self, words: str) -> CompressCall:
        """The call with more words to the model that summarizes."""
        more = "\n".join(filter(None, (self.config.summary_instructions, words)))
        return replace(self, config=replace(self.config, summary_instructions=more))


@dataclass(frozen=True)
class Look:
    """A call's transcript as it stands in the ledger now."""

    call: CompressCall
    session: Session
    reading: Reading
    """The call's, or that of its messages with renderings expanded."""
    layout: Layout
    lines: dict[int, Message] = field(default_factory=dict)
    """What results would say that may be masked, by index; empty until somebody asks."""
    dropped: frozenset[int] = frozenset()
    """Places in the list as it came of messages that the archive had no room for."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and stable id: by it one compression of the session at a time is ensured."""
        return self.session.namespace, self.session.id

    @property
    def budget(self) -> Budget:
        """The call's. After a compression was taken back nothing is compressed unasked while the
        window takes the whole: the next turn would take the taking back."""
        budget = self.call.budget
        return replace(budget, trigger=budget.limit) if self.session.was_undone else budget

    def originals(self, start: int, end: int) -> Sequence[Message]:
        """The messages of a stretch, as they came and in their order."""
        origins = self.layout.transcript.origins[start:end]
        return self.reading.given.at(sorted(o for o in origins if o is not None))


def checked(options: Options) -> Options:
    """The keywords that say something: None is as good as left out.

    Raises:
        ConfigError: a value that cannot work.
    """
    unknown = sorted(set(options) - set(Options.__annotations__))
    if unknown:
        raise TypeError(f"compress() got an unexpected keyword argument {unknown[0]!r}")
    given = {name: value for name, value in options.items() if value is not None}
    check_name("session_id", options.get("session_id"))
    check_name("parent_session_id", options.get("parent_session_id"))
    model, tools = given.get("auxiliary_model", ""), given.get("tools", ())
    if not isinstance(model, str):
        raise ConfigError(f"auxiliary_model={model!r}: expected the name of a model, or None")
    if not isinstance(tools, (list, tuple)) or any(not isinstance(t, Mapping) for t in tools):
        raise ConfigError(f"tools: {tools!r:.60}: expected a list of schemas, or None")
    for name in ("force", "extends"):
        if not isinstance(given.get(name, False), bool):
            raise ConfigError(f"{name}={given[name]!r}: expected True or False")
    return cast("Options", given)


def check_name(option: str, value: Any) -> None:
    """Pass the name of a session, or None: "" would be that of all conversations without one."""
    if value is not None and not (isinstance(value, str) and value):
        raise ConfigError(f"{option}={value!r}: expected a name that is not empty, or None")


def config_of(options: Options, config: CompressorConfig) -> CompressorConfig:
    """The configuration with what a call says otherwise."""
    tail, prose = options.get("protect_last_n_tokens"), options.get("summary_target_tokens")
    return replace(
        config,
        protect_last_n_tokens=config.protect_last_n_tokens if tail is None else tail,
        summary_target_tokens=config.summary_target_tokens if prose is None else prose,
    )


def budget_of(options: Options, config: CompressorConfig, tokens: TokenCounter) -> Budget:
    """What the view may weigh: by the model's window, or by the size that a call asks for.

    Raises:
        ConfigError: a number of tokens that is none.
    """
    opening = tokens.messages([])
    target = options.get("target_tokens")
    if target is not None:
        return Budget.exactly(config, whole("target_tokens", target) - opening)
    window = model_limits(config.model, config.context_window).window
    overhead = whole("overhead_tokens", options.get("overhead_tokens", 0), 0)
    return Budget.of(config, window, overhead + opening)
