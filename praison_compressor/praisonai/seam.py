"""The host's own seam: where it has context selectors (`docs/upstream`), it asks us for the view of
each request by itself, and no name of it is replaced.
"""

from __future__ import annotations

import importlib
import logging
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..messages import Message, text_of
from ..summaries.threads import run
from . import commands, options
from .agent_compressor import AgentCompressor
from .agents import Agents
from .requests import CHAT, LITELLM_CHAT, RESPONSES, HostRequest
from .wire import prompt_tokens

log = logging.getLogger(__name__)

_READ = "agent api attempt error instructions requested_output response_format tools usage"
"""What we read of the host's budgets."""


def find() -> Any:
    """The host's module of context selectors; None where it has none, or one of another shape."""
    try:
        found = importlib.import_module("praisonaiagents.context.selector")
        parts = (found.register_context_selector, found.remove_context_selector, found.in_turn)
        known = found.SelectionBudget.__dataclass_fields__
    except (ImportError, AttributeError):
        return None
    return found if set(_READ.split()) <= set(known) and all(map(callable, parts)) else None


def register(host: Any, agents: Agents[AgentCompressor]) -> Callable[[], None]:
    """Have the host ask us for the agents that asked; returns what takes that back."""
    selectors: weakref.WeakKeyDictionary[Any, Selector] = weakref.WeakKeyDictionary()

    def selector_of(agent: Any) -> Selector | None:
        compressor, known = agents.of(agent), selectors.get(agent)
        if compressor is not None and (known is None or known.compressor is not compressor):
            selectors[agent] = Selector(compressor)
        return None if compressor is None else selectors[agent]

    def resolve(context: Any) -> Callable[[Any], Selector | None] | None:
        is_ours = agents.are_served and options.read(context) is not None
        return selector_of if is_ours else None

    host.register_context_selector(resolve)
    return lambda: host.remove_context_selector(resolve)


class _Sent(NamedTuple):
    """What was selected for one request of the host."""

    budget: Any
    request: HostRequest
    view: Sequence[Message]
    messages: list[Any]
    """The view as the request carries it."""
    tools: list[Any]


class Selector:
    """One agent's `ContextSelectorProtocol` of the host."""

    def __init__(self, compressor: AgentCompressor) -> None:
        self.compressor = compressor
        # Of requests that are under way, and the last: seldom more of one agent.
        self._sent: deque[_Sent] = deque(maxlen=8)

    def select_context(self, messages: list[Any], model: str, budget: Any) -> list[Any] | None:
        """The view to send in the place of a request's messages, from anywhere."""
        return run(self.aselect_context(messages, model, budget))

    async def aselect_context(
        self, messages: list[Any], model: str, budget: Any
    ) -> list[Any] | None:
        """The same without ever blocking an event loop."""
        before = next((sent for sent in self._sent if sent.budget is budget), None)
        self._learn()
        flat, key = (budget.api == "responses"), "input" if budget.api == "responses" else "messages"
        # What an agent sends by OpenAI's client takes no marks, whatever its model is called.
        by_litellm = getattr(budget.agent, "_using_custom_llm", False)
        shape = RESPONSES if flat else LITELLM_CHAT if by_litellm else CHAT
        params = {
            "model": model,
            key: messages,
            "instructions": budget.instructions,
            "tools": budget.tools,
            "text" if flat else "response_format": budget.response_format,
            "max_output_tokens" if flat else "max_tokens": budget.requested_output,
        }
        request = shape.read(self.compressor.offering(params, flat=flat))
        if request is None:
            return None
        if before is None:
            self._tell_of_command(budget.agent, request)
            view: Sequence[Message] | None = await self.compressor.aview(request)
        else:
            view = await self.compressor.aother_view(request, before.view, budget.error)
        if view is None and before is not None:  # the same again: the host raises the refusal
            budget.tools[:] = before.tools
            return before.messages
        offered = self.compressor.offering(params, flat=flat)
        written = shape.write(offered, view or (), self.compressor.refused(request))
        budget.tools[:] = written["tools"]
        self._sent.append(_Sent(budget, request, view or (), written[key], list(budget.tools)))
        return list(written[key])

    def _learn(self) -> None:
        """Calibrate by the usage that the host has put into the budgets of answered requests."""
        for sent in list(self._sent):
            reported = prompt_tokens(sent.budget)
            if reported is not None:
                self._sent.remove(sent)
                self.compressor.used(sent.request, sent.view, reported)

    def _tell_of_command(self, agent: Any, request: HostRequest) -> None:
        command = commands.read(agent, text_of(request.messages[-1]))
        if command is not None:
            log.warning(
                "/%s goes to the model: where the host has context selectors, call the methods of "
                "agent.context_compressor instead",
                command.name,
            )
