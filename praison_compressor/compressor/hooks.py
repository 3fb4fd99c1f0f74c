"""The events of a compression, and the hook before it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from contextvars import ContextVar
from typing import Literal

from ..concurrency import begin
from ..events import Event, Hook, Listener
from ..view.view import View
from .decision import Decision
from .request import Key
from .result import CompressResult

logger = logging.getLogger(__name__)


def emit(telemetry: Listener, listener: Listener | None, event: Event) -> None:
    """Pass the event to telemetry and the listener; log the listener's failure."""
    telemetry(event)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:
        logger.exception("a listener failed at %s", event.name)


def begun(decision: Decision) -> Event:
    """Return the event "started" of a planned compression."""
    request, view, plan = decision.request, decision.view, decision.plan
    numbers = {
        "tokens": view.size(),
        "messages": len(view.tokens),
        "trigger": request.budget.trigger,
        "target": request.budget.target,
        "limit": request.budget.limit,
        "to_summarize": len(plan.summarized),
        "to_mask": len(plan.masks + plan.excerpts),
        "forced": request.force,
    }
    return Event("started", view.session.id, numbers)


def committed(before: View, result: CompressResult, seconds: float) -> Event:
    """Return the event of a compression that was recorded."""
    usage = result.usage
    return Event(
        "committed",
        before.session.id,
        {
            "tokens_before": before.size(),
            "tokens_after": result.tokens_after,
            "method": result.summary_method,
            "status": result.context_status,
            "model": next((text.model for text in result.written if text.model), None),
            "masked": result.masked,
            "secrets": result.masked_secrets,
            "epoch": result.session_id,
            "parent": result.parent_session_id,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cost": usage.cost,
            "cost_saved": result.cost_saved,
            "seconds": seconds,
        },
    )


# -------------------------------------------------------------- the hook


_asking: ContextVar[Key | None] = ContextVar("praison_compressor_hook", default=None)


def is_asked_about(key: Key) -> bool:
    """Return whether the caller runs inside the hook for that session."""
    return _asking.get() == key


async def asked(hook: Hook | None, event: Event, key: Key) -> str | Literal[False] | None:
    """Return the hook's answer; None without a hook or after its failure."""
    if hook is None:
        return None
    token = _asking.set(key)
    try:
        # A hook may block: call it in a thread. An async hook only makes its coroutine there.
        said = await asyncio.wrap_future(begin(lambda: hook(event)))
        said = await said if inspect.isawaitable(said) else said
    except (Exception, SystemExit):
        logger.exception("session %s: the hook before a compression failed", event.session_id)
        return None
    finally:
        _asking.reset(token)
    if said is None or said is False or isinstance(said, str):
        return said
    logger.warning("the hook before a compression gave %r: expected None, False or text", said)
    return None
