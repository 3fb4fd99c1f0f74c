"""Give an agent the recall tools, and select what they read of its ledger.

The tools are given with the first compression. The request that first carries a summary has another
prefix anyway, so the tools cost its cache nothing. The host lists a turn's tools before that: the
running turn's requests get ours on their way out (`offered`), later ones from the agent's own list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..ledger.segments import Entry, Session
from ..ledger.stores import EVERY, Store
from ..ledger.tools import SCHEMAS, recall_tools, schemas_for
from ..ledger.words import Hit
from ..messages import Message

log = logging.getLogger(__name__)

Tool = Callable[..., str]


def wants_recall(agent: Any, asked: bool | None) -> bool:
    """Return whether an agent gets the tools; by default beside others."""
    may = all(_may_call(agent, schema["function"]["name"]) for schema in SCHEMAS)
    return may and (bool(tools_of(agent)) if asked is None else asked)


class RecallTools:
    """The two tools of one agent."""

    def __init__(self, make: Callable[[], Sequence[Tool]]) -> None:
        self._make = make
        self._given: list[Tool] = []
        self._is_settled = False

    def give(self, agent: Any) -> None:
        """Put the tools on the agent's list, except for taken names.

        A bot restores its own list after each turn: then the tools are put back.
        """
        if agent is None:
            return
        if not self._is_settled:
            self._first_given(agent)
        has = tools_of(agent)
        missing = [tool for tool in self._given if tool not in has]
        if missing:
            agent.tools = [*has, *missing]

    def _first_given(self, agent: Any) -> None:
        names = {name_of(tool) for tool in tools_of(agent)}
        made = self._make()
        self._is_settled = True
        self._given = [tool for tool in made if tool.__name__ not in names]
        for tool in made:
            if tool not in self._given:
                log.warning(
                    "agent %s: its own tool %s is kept, in the place of the recall tool",
                    *(getattr(agent, "display_name", "(gone)"), tool.__name__),
                )

    def take_back(self, agent: Any) -> None:
        """Take the tools off the agent's list."""
        if self._given:
            agent.tools = [tool for tool in tools_of(agent) if tool not in self._given]
        self._given, self._is_settled = [], False

    def offered(self, agent: Any, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request's parameters with the recall tools that it lacks.

        A request with other tools than the agent's own is left alone, and so is one of an agent
        whose list lacks ours: the host would not find our functions.
        """
        sent, has = params.get("tools"), tools_of(agent)
        given = [tool for tool in self._given if tool in has]
        if not given or not isinstance(sent, (list, tuple)) or not sent:
            return params
        names = {name_of(tool) for tool in sent}
        ours = {tool.__name__ for tool in given}
        own = {name_of(tool) for tool in has} - ours - {None}
        if not own <= names:
            return params
        described = schemas_for("responses" if "input" in params else "chat")
        more = [each for each in described if name_of(each) in ours - names]
        return {**params, "tools": [*sent, *more]} if more else params


def tools_of(agent: Any) -> list[Any]:
    """Return the tools on an agent's list."""
    tools = getattr(agent, "tools", None)
    if isinstance(tools, (list, tuple)):
        return list(tools)
    return [] if tools is None else [tools]


def drop_copied(agent: Any) -> None:
    """Remove another agent's recall tools, which a copied list has."""
    has = tools_of(agent)
    own = [tool for tool in has if getattr(tool, "__module__", None) != recall_tools.__module__]
    if len(own) < len(has):
        agent.tools = own


def name_of(tool: Any) -> str | None:
    """Return the name of a tool in any form, or None."""
    if isinstance(tool, str):
        return tool
    if isinstance(tool, Mapping):
        function = tool.get("function")
        name = (function if isinstance(function, Mapping) else tool).get("name")
    else:
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return name if isinstance(name, str) else None


def _may_call(agent: Any, name: str) -> bool:
    """Return whether the agent's permissions allow a tool of that name."""
    allowed = getattr(agent, "_tool_name_allowed", None)
    return bool(allowed(name)) if callable(allowed) else True


# ------------------------------------------------------------ what the tools read


@dataclass(frozen=True)
class Archive:
    """A ledger's store without what the conversation took back."""

    store: Store
    hidden: frozenset[str]
    """Hashes of the entries that are left out."""

    def originals(
        self, session: Session, entry: Entry, wanted: slice = EVERY
    ) -> list[Message] | None:
        """Return an entry's archived messages, or None if left out."""
        return None if entry.hash in self.hidden else self.store.originals(session, entry, wanted)

    def search(self, *asked: Any, **options: Any) -> list[Hit]:
        """Return the messages that match, best first."""
        found = self.store.search(*asked, **options)
        return [hit for hit in found if hit.entry not in self.hidden]


def archive_of(
    store: Store, namespace: str, session_id: str, reads: Callable[[Entry], bool]
) -> Store:
    """Return a session's archive, without the entries that recall may not read."""
    entries = store.open(namespace, session_id).entries
    archive = Archive(store, frozenset(e.hash for e in entries if not reads(e)))
    return cast("Store", archive)  # all of a store that recall asks
