"""Where the host has context selectors (`docs/upstream`), it asks us for the view of each request
by itself, and no name of it is replaced.
"""

from __future__ import annotations

import importlib
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..messages import Message
from ..summaries.threads import run
from . import options
from .agent_compressor import AgentCompressor
from .agents import Agents
from .requests import CHAT, LITELLM_CHAT, RESPONSES, HostRequest
from .wire import prompt_tokens

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


def register(host: Any, agents: Agents) -> Callable[[], None]:
    """Have the host ask us for the agents that asked, or name no strategy where that is to be ours;
    returns what takes that back."""
    selectors: weakref.WeakKeyDictionary[Any, Selector] = weakref.WeakKeyDictionary()

    def selector_of(agent: Any) -> Selector | None:
        compressor, known = agents.of(agent), selectors.get(agent)
        if compressor is None:
            return None
        compressor.compress_alone()
        if known is None or known.compressor is not compressor:
            known = selectors[agent] = Selector(compressor)
        return known

    def resolve(context: Any) -> Callable[[Any], Selector | None] | None:
        if not agents.are_served:
            return None
        is_silent = options.names_none(context) and agents.by_default
        return selector_of if is_silent or options.read(context) is not None else None

    host.register_context_selector(resolve)
    return lambda: host.remove_context_selector(resolve)


class _Sent(NamedTuple):
    """What was selected for one request of the host."""

    budget: Any
    request: HostRequest
    view: Sequence[Message]
    written: Mapping[str, Any]


class Selector:
    """One agent's `ContextSelectorProtocol` of the host."""

    def __init__(self, compressor: AgentCompressor) -> None:
        self.compressor = compressor
        # Of requests that are under way, and the last: seldom more of one agent.
        self._sent: deque[_Sent] = deque(maxlen=8)

    @property
    def whole_results(self) -> bool:
        """Whether results of tools may come whole: the host need not cut them."""
        return self.compressor.whole_results

    def select_context(self, messages: list[Any], model: str, budget: Any) -> list[Any] | None:
        """The view to send in the place of a request's messages, from anywhere."""
        return run(self.aselect_context(messages, model, budget))

    async def aselect_context(
        self, messages: list[Any], model: str, budget: Any
    ) -> list[Any] | None:
        """The same without ever blocking an event loop."""
        before = next((sent for sent in reversed(self._sent) if sent.budget is budget), None)
        self._learn()
        flat = budget.api == "responses"
        # What an agent sends by OpenAI's client takes no marks, whatever its model is called.
        by_litellm = getattr(budget.agent, "_using_custom_llm", False)
        shape = RESPONSES if flat else LITELLM_CHAT if by_litellm else CHAT
        params = _params(messages, model, budget)
        request = shape.read(self.compressor.offering(params))
        if request is None:
            return None
        view = await self._view(budget, request, before)
        if view is not None:
            offered = self.compressor.offering(params)
            again = shape.write(offered, view, self.compressor.refused(request))
            before = _Sent(budget, request, view, again)
            self._sent.append(before)
        # Without another view the same goes back: the provider's error then goes on.
        written = params if before is None else before.written
        budget.tools[:], budget.instructions = written["tools"], written.get("instructions")
        return list(written["input" if flat else "messages"])

    async def _view(
        self, budget: Any, request: HostRequest, before: _Sent | None
    ) -> Sequence[Message] | None:
        """What to send; None where the provider finds it too long and nothing shorter is known."""
        if before is not None:
            other = await self.compressor.other_view(request, before.view, budget.error)
            return None if other == before.view else other
        return await self.compressor.view(request)

    def _learn(self) -> None:
        """Calibrate by the usage that the host has put into the budgets of answered requests."""
        for sent in list(self._sent):
            reported = prompt_tokens(sent.budget)
            if reported is not None:
                self._sent.remove(sent)
                self.compressor.used(sent.request, sent.view, reported)


def _params(messages: list[Any], model: str, budget: Any) -> dict[str, Any]:
    """The request's parameters, as far as the host tells them."""
    known = {"model": model, "instructions": budget.instructions, "tools": list(budget.tools)}
    form, asked = budget.response_format, budget.requested_output
    if budget.api == "responses":
        return {**known, "input": messages, "text": form, "max_output_tokens": asked}
    return {**known, "messages": messages, "response_format": form, "max_tokens": asked}
