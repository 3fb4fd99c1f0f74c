"""Export spans and metrics by OpenTelemetry's GenAI conventions of 2026.

Only numbers and names are exported. Without `opentelemetry-api` nothing is exported. No failure
here ends a turn.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..concurrency import renew_after_fork
from ..events import Event, Listener

if TYPE_CHECKING:
    from opentelemetry.trace import Span


logger = logging.getLogger(__name__)

SCOPE = "praison_compressor"

OPERATION = "compress_context"
"""Operation name of a compression's span; the conventions allow custom names."""

TOKEN_BUCKETS = tuple(float(4**power) for power in range(14))
SECOND_BUCKETS = tuple(0.01 * 2**power for power in range(14))
"""Histogram buckets as the conventions recommend."""


class Telemetry:
    """Export one compressor's events; `tracers` and `meters` default to the global providers."""

    def __init__(self, *, tracers: Any = None, meters: Any = None) -> None:
        self._providers = (tracers, meters)
        self._lock = renew_after_fork(threading.Lock())
        self._exporter: _Exporter | None = None
        self._was_tried = False

    def __call__(self, event: Event) -> None:
        """Export an event; log a failure."""
        try:
            exporter = self._open_exporter()
            if exporter is not None:
                getattr(exporter, f"on_{event.name}", lambda _: None)(event)
        except Exception:
            logger.debug("no telemetry of %s", event.name, exc_info=True)

    def _open_exporter(self) -> _Exporter | None:
        with self._lock:
            if not self._was_tried:
                self._was_tried = True
                with contextlib.suppress(ImportError):
                    self._exporter = _Exporter(*self._providers)
            return self._exporter


def emit(telemetry: Listener, listener: Listener | None, event: Event) -> None:
    """Pass the event to telemetry and the listener; log the listener's failure."""
    telemetry(event)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:
        logger.exception("a listener failed at %s", event.name)


class _Exporter:
    def __init__(self, tracers: Any, meters: Any) -> None:
        from opentelemetry import metrics, trace

        self._api = trace
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=tracers)
        meter = metrics.get_meter(SCOPE, meter_provider=meters)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens read and written for summaries.",
            explicit_bucket_boundaries_advisory=TOKEN_BUCKETS,
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "Time of one call for a summary.",
            explicit_bucket_boundaries_advisory=SECOND_BUCKETS,
        )
        self._compressions = meter.create_counter(
            f"{SCOPE}.compressions", "{compression}", "Compressions, by outcome."
        )
        self._removed = meter.create_counter(
            f"{SCOPE}.tokens.removed", "{token}", "Tokens that compressions took out of views."
        )
        self._fallbacks = meter.create_counter(
            f"{SCOPE}.fallbacks", "{fallback}", "Models that gave no summary."
        )
        self._open: dict[str, Span] = {}

    def on_started(self, event: Event) -> None:
        attributes = {
            "gen_ai.operation.name": OPERATION,
            "gen_ai.conversation.id": event.session_id,
            f"{SCOPE}.tokens_before": event.data["tokens"],
            f"{SCOPE}.messages": event.data["messages"],
        }
        self._open[event.session_id] = self._tracer.start_span(OPERATION, attributes=attributes)

    def on_model_answered(self, event: Event) -> None:
        data, model, session = event.data, event.data.get("model"), event.session_id
        route, slash, _ = (model or "").lower().partition("/")
        common = {
            "gen_ai.operation.name": "chat",
            # The provider is the model's route in litellm.
            "gen_ai.provider.name": route if slash else "_OTHER",
            **_attributes(data, {"gen_ai.request.model": "model", "error.type": "error"}),
        }
        parent = self._open.get(session)
        now = time.time_ns()
        span = self._tracer.start_span(
            f"chat {model}" if model else "chat",
            context=None if parent is None else self._api.set_span_in_context(parent),
            kind=self._api.SpanKind.CLIENT,
            start_time=now - int(data["seconds"] * 1e9),
            attributes={**common, "gen_ai.conversation.id": session, **_attributes(data, USAGE)},
        )
        if data.get("error"):
            span.set_status(self._api.Status(self._api.StatusCode.ERROR))
        span.end(end_time=now)
        self._seconds.record(data["seconds"], common)
        for kind, field in (("input", "prompt_tokens"), ("output", "completion_tokens")):
            if data.get(field):
                self._tokens.record(data[field], {**common, "gen_ai.token.type": kind})

    def on_fell_back(self, event: Event) -> None:
        self._fallbacks.add(1, _attributes(event.data, {"gen_ai.request.model": "model"}))

    def on_committed(self, event: Event) -> None:
        data = event.data
        outcome = {f"{SCOPE}.method": data["method"] or "masks", f"{SCOPE}.status": data["status"]}
        self._compressions.add(1, outcome)
        self._removed.add(max(0, data["tokens_before"] - data["tokens_after"]), outcome)
        self._end(event, {**outcome, **_attributes(data, USAGE), **_attributes(data, COMMITTED)})

    def on_abandoned(self, event: Event) -> None:
        error = {"error.type": str(event.data["error"])}
        self._compressions.add(1, {f"{SCOPE}.status": "abandoned", **error})
        self._end(event, error)

    def _end(self, event: Event, attributes: dict[str, Any]) -> None:
        span = self._open.pop(event.session_id, None)
        if span is not None:
            span.set_attributes(attributes)
            if "error.type" in attributes:
                span.set_status(self._api.Status(self._api.StatusCode.ERROR))
            span.end()


USAGE = {
    "gen_ai.usage.input_tokens": "prompt_tokens",
    "gen_ai.usage.output_tokens": "completion_tokens",
    "gen_ai.usage.cache_read.input_tokens": "cache_read_tokens",
}

COMMITTED = {
    "gen_ai.request.model": "model",
    f"{SCOPE}.tokens_after": "tokens_after",
    f"{SCOPE}.masked": "masked",
    f"{SCOPE}.epoch": "epoch",
    f"{SCOPE}.cost_usd": "cost",
}


def _attributes(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {name: data[field] for name, field in names.items() if data.get(field) is not None}
