"""`agent.context_compressor`: what an agent's users read of it and do with it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import ContextUse, Preview
from ..compressor.result import CompressResult
from ..concurrency import run
from ..config import CompressorConfig
from ..errors import SessionNotFound, StoreUnavailable
from ..events import Listener
from ..ledger.segments import Segment
from ..ledger.stores import SessionInfo, Store, lasting
from ..ledger.tools import recall_tools
from ..messages import Message, leading_in
from ..messages.dropped_steps import Carried, Completed, carried_in
from .conversations import Conversation, Place, Status, Turn
from .engines import Engines
from .journal import KeptSteps, kept_of
from .known_conversations import is_under, named_by_host
from .ledgers import Forgotten, forget, host_session
from .notices import Notices
from .options import RequestedContext, Settings
from .recall import RecallTools, archive_of, drop_copied, wants_recall
from .sending import Sender


class AgentCompressor:
    """Compress the conversations of one agent."""

    def __init__(self, agent: Any, asked: RequestedContext, config: CompressorConfig) -> None:
        self._agent = weakref.ref(agent)
        self.asked = asked
        drop_copied(agent)
        is_wanted = config.recall
        config = replace(config, recall=wants_recall(agent, is_wanted))
        self._notices = Notices(self._agent, lambda session: self._known.named(session))
        self._engines = Engines(config, self._agent, asked.own_model, self._notices)
        self._settings = Settings(agent, asked)
        self._recall = RecallTools(self._recall_tools)
        self.sender = Sender(
            *(self._agent, self._engines, self._notices, self._recall), automatic=asked.automatic
        )
        self._known = self.sender.known
        if is_wanted:
            self._recall.give(agent)

    def turn(self) -> AbstractContextManager[Turn]:
        """Run a turn of the agent, in which only this compressor compresses."""
        self._settings.compress_alone(self._agent())
        return self.sender.turn()

    def leave(self) -> None:
        """Give the agent back what it had."""
        agent = self._agent()
        if agent is not None:
            self._recall.take_back(agent)
            self._settings.restore(agent)

    def _recall_tools(self) -> list[Callable[..., str]]:
        weak = weakref.ref(self)

        def ours() -> AgentCompressor:
            found = weak()  # the agent holds its tools, and must not hold its compressor
            if found is None:
                raise StoreUnavailable("the conversation's archive is closed")
            return found

        return recall_tools(
            # Asked at each call: each turn has its own conversation.
            lambda: ours()._archive(),
            lambda: ours().ledger.open(ours().config.namespace, ours()._known.asking.session_id),
            lambda text: ours().engine().tokens.text(text),
            turn=lambda: (ours()._known.asking.session_id, ours()._known.asking.progress),
        )

    def _archive(self) -> Store:
        found, namespace = self._known.asking, self.config.namespace
        return archive_of(self.ledger, namespace, found.session_id, found.reads)

    # ------------------------------------------------------------ what it reads

    @property
    def config(self) -> CompressorConfig:
        """Return the options in force."""
        return self._engines.config

    @property
    def ledger(self) -> Store:
        """Return the store of this agent's conversations."""
        return self._engines.open()

    @property
    def conversation(self) -> Conversation:
        """Return the running turn's conversation, else the history's."""
        return self._known.now

    @property
    def session_id(self) -> str:
        """Return the ledger's session of the conversation."""
        return self.conversation.session_id

    @property
    def context_status(self) -> str:
        """Return "full", "masked" or "summarized", for the conversation's last request."""
        last = self.conversation.result
        return "full" if last is None else last.context_status

    @property
    def last_result(self) -> CompressResult | None:
        """Return the result of the conversation's last request."""
        return self.conversation.result

    @property
    def notice(self) -> str | None:
        """Return the line that reported the conversation's last compression."""
        return self.conversation.notice

    def engine(self, model: str | None = None) -> ContextCompressor:
        """Return the compressor for a model; all share the agent's ledger."""
        return self._engines.of(model)

    def subscribe(self, listener: Listener) -> None:
        """Pass every event of this agent's compressions to `listener`, with its numbers."""
        self._notices.subscribe(listener)

    def status(self) -> Status:
        """Return the conversation's tokens, window and session as of its last request."""
        found = self.conversation
        engine = self.engine(found.model)
        return found.status(engine, engine.bill(found.session_id))

    def kept(self) -> KeptSteps:
        """Return the steps of earlier turns that a request would carry now."""
        return kept_of(self._now().back, self.engine())

    def context_use(self) -> ContextUse:
        """Return what would fill the window if the conversation were sent now.

        Raises:
            CompressorError: as `ContextCompressor.context_use` does.
        """
        found = self.conversation
        return self.engine().context_use(
            self._now().messages, session_id=found.session_id, overhead_tokens=found.tool_tokens
        )

    def carried(self) -> list[Message]:
        """Return the messages that a request would carry now, before compression."""
        return self._now().messages

    def preview(self, *, write: bool = False) -> Preview:
        """Return what `compress` would keep, mask and summarize now; record nothing.

        With `write` a model is asked for the summaries. `compress` then commits what was shown.

        Raises:
            CompressorError: as `ContextCompressor.preview` does.
        """
        found, messages = self.conversation, self._now().messages
        options = {**found.options, **found.choices.options(messages)}
        engine = self._engines.focused(found.choices.focus)
        found.shown = engine.preview(messages, write=write, force=True, **options)
        return found.shown

    def choose(
        self,
        *,
        keep: Sequence[str] = (),
        since: str | None = None,
        until: str | None = None,
        focus: str | None = None,
    ) -> Preview:
        """Choose what the next `compress` keeps, takes and stresses; return its preview.

        The references are those of the last preview. A message that is kept is never summarized,
        by no later compression.

        Raises:
            CompressorError: as `preview` does; the choices are then as before.
        """
        found = self.conversation
        shown, before = found.shown or self.preview(), found.choices
        if keep:
            places = (place for each in keep if (place := _place(shown, each)) is not None)
            kept = dict.fromkeys((*before.keep, *places))
            found.choices = replace(before, keep=tuple(kept))
        elif focus is not None:
            found.choices = replace(before, focus=focus or None)
        else:
            found.choices = replace(before, since=_place(shown, since), until=_place(shown, until))
        try:
            return self.preview()
        except Exception:
            found.choices, found.shown = before, shown
            raise

    def _now(self) -> Completed:
        """Return the conversation as a request would carry it now."""
        found = self.conversation
        # The host keeps no system messages in its history.
        system, said = found.transcript, self._known.history or []
        messages = [*system[: leading_in(system)], *said[leading_in(said) :]]
        if not self.config.keep_tool_steps:
            return Completed(messages, Carried(), [], [])
        return found.journal.at_rest(messages, self.engine())

    # ------------------------------------------------------------ what it does

    async def acompress(self, focus: str | None = None) -> CompressResult:
        """Compress the conversation now; `focus` names what the summary must keep.

        Raises:
            CompressorError: as `ContextCompressor.compress` does; this is no turn of the agent.
        """
        found = self.conversation
        choices = replace(found.choices, focus=focus) if focus else found.choices
        return await self.sender.compress_now(self._now(), found, choices)

    def compress(self, focus: str | None = None) -> CompressResult:
        """Compress the conversation now, from anywhere."""
        return run(self.acompress(focus))

    def idle(self) -> int:
        """Begin the next summaries of resting conversations; return how many.

        A conversation rests once its provider's cache is cold. Its summary is begun where the view
        is above `idle_trigger_ratio` of the trigger, off the caller's thread.

        Raises:
            CompressorError: as `ContextCompressor.idle` does.
        """
        return self.sender.idle()

    def pin(self, text: str) -> tuple[str, ...]:
        """Keep a text in every view word for word; return all pins."""
        found = self.conversation
        found.pinned = tuple(dict.fromkeys((*found.pinned, text)))
        return found.pinned

    def undo(self) -> tuple[Segment, ...]:
        """Take the conversation's last compression back, as `ContextCompressor.undo` does.

        Raises:
            LedgerError: the store cannot be read or written.
        """
        found, engine = self.conversation, self.engine()
        undone = engine.undo(found.session_id)
        if undone:
            now = self._now()
            result = engine.best(now.messages, **found.options)
            beside, model = found.overhead_tokens, found.model
            found.remember(result, engine, beside, model, now.back, is_sent=False)
        return undone

    def new_session(self) -> str:
        """Begin a conversation with an empty archive; return its session id."""
        agent, earlier = self._agent(), self._known.leaving()
        if agent is not None:
            agent.clear_history()
        return self._known.begin(earlier).session_id

    def resume(self, session_id: str, token_budget: int | None = None) -> str:
        """Go on with a stored session, named by any epoch's id.

        The agent's history becomes the session's questions and answers; tool steps come back with
        the next request. With `token_budget`, or without `keep_tool_steps`, it becomes the whole
        transcript where that fits, else its view. An agent that is in that session already keeps
        its own history.

        Raises:
            SessionNotFound: the store has none of that name in this namespace, or it is another
                person's: in a bot's turn only the sessions under the bot's own key are found.
            BudgetTooSmall: what cannot be dropped exceeds `token_budget`.
        """
        root = self.ledger.lineage(self.config.namespace, session_id)[-1].session_id
        agent = self._agent()
        if not is_under(root, named_by_host(agent)[0]):
            raise SessionNotFound(f"no session {session_id} of this conversation")
        if agent is None or (root == self.session_id and agent.chat_history):
            return root
        engine = self.engine()
        result = engine.resume(root, token_budget)
        messages = result.messages
        if self.config.keep_tool_steps and token_budget is None:
            session = engine.store.open(self.config.namespace, root)
            carried = carried_in(engine.store.transcript(session), engine.tokens.cache)
            messages = carried.spoken
        earlier = self._known.leaving()
        agent.clear_history()
        agent.chat_history = list(messages[leading_in(messages) :])
        self._known.adopt(root, earlier).remember(result, engine, 0, None, (), is_sent=False)
        return root

    def sessions(self) -> list[SessionInfo]:
        """Return the stored sessions of the conversation's user, the newest first.

        Those under the host's id, and those left by `/new` and `/resume`: others share the store.

        Raises:
            StoreUnavailable: the store cannot be reached.
        """
        store, key, own = lasting(self.ledger), self._known.key, self._known.leaving()
        found = [] if store is None else store.sessions(self.config.namespace)
        mine = [e for e in found if e.id in own or (key is not None and is_under(e.id, key))]
        return sorted(mine, key=lambda each: each.updated, reverse=True)

    def save(self) -> int:
        """Record the conversations for `resume`; return how many are recorded.

        With `keep_tool_steps` and a store on disk each request and each answer is recorded by
        itself.
        """
        self.engine().sessions.settle(self.ledger)
        if self.config.keep_tool_steps and lasting(self.ledger):
            return self._known.settle()
        return self.engine().save_all()

    def forget(self, target: str | None = None) -> Forgotten:
        """Remove a session (None: this one) or a message from the ledger.

        The agent's own history stays, and so does the transcript in the host's session store.

        Raises:
            SessionNotFound: the store has none of that name in this namespace.
            StoreUnavailable: it cannot be reached, or it is this process's memory.
        """
        session = host_session(self._agent())
        there = None if session is None else session[0]
        return forget(self.ledger, self.config.namespace, target or self.session_id, there)


def _place(shown: Preview, reference: str | None) -> Place | None:
    """Return the place of a message that a preview shows."""
    if shown.repaired or not reference or reference not in shown.references:
        return reference
    return shown.references.index(reference) - leading_in(shown.messages)
