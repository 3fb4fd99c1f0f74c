"""Spans and metrics by OpenTelemetry's GenAI conventions, where `opentelemetry-api` is installed.

Numbers and names only: no text of a conversation is in them. Nothing in here ends a turn, and
without an SDK that exports (`opentelemetry-sdk`, set up by the application) it costs next to
nothing. The names are those of the conventions as of 2026 (their status is "development").
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..config import Event
from ..messages.forks import renewed

if TYPE_CHECKING:
    from opentelemetry.trace import Span


logger = logging.getLogger(__name__)

NAME = "praison_compressor"

OPERATION = "compress_context"
"""Of the span round a compression; the conventions leave room for names of one's own."""

TOKEN_BUCKETS = tuple(float(4**power) for power in range(14))

SECOND_BUCKETS = tuple(0.01 * 2**power for power in range(14))
"""Both as the conventions ask."""


class Telemetry:
    """Listens to one compressor. `tracers` and `meters`: the global providers unless given."""

    def __init__(self, *, tracers: Any = None, meters: Any = None) -> None:
        self._providers = (tracers, meters)
        self._lock = renewed(threading.Lock())
        self._exporter: _Exporter | None = None
        self._is_absent = False

    def __call__(self, event: Event) -> None:
        """Take an event; whatever goes wrong with it stays in here."""
        try:
            exporter = self._opened()
            if exporter is not None:
                exporter.take(event)
        except Exception:
            logger.debug("no telemetry of %s", event.name, exc_info=True)

    def _opened(self) -> _Exporter | None:
        """What exports, made at the first event: importing the API takes a tenth of a second."""
        with self._lock:
            if self._exporter is None and not self._is_absent:
                self._is_absent = True
                with contextlib.suppress(ImportError):
                    self._exporter = _Exporter(*self._providers)
            return self._exporter


class _Exporter:
    """The instruments, and the spans that are open."""

    def __init__(self, tracers: Any, meters: Any) -> None:
        from opentelemetry import metrics, trace

        self._tracer = trace.get_tracer(NAME, tracer_provider=tracers)
        meter = metrics.get_meter(NAME, meter_provider=meters)
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
            f"{NAME}.compressions", "{compression}", "Compressions, by outcome."
        )
        self._removed = meter.create_counter(
            f"{NAME}.tokens.removed", "{token}", "Tokens that compressions took out of views."
        )
        self._fallbacks = meter.create_counter(
            f"{NAME}.fallbacks", "{fallback}", "Models that gave no summary."
        )
        self._open: dict[str, Span] = {}

    def take(self, event: Event) -> None:
        handler = getattr(self, f"_on_{event.name}", None)
        if handler is not None:
            handler(event)

    def _on_started(self, event: Event) -> None:
        span = self._tracer.start_span(
            OPERATION,
            attributes={
                "gen_ai.operation.name": OPERATION,
                "gen_ai.conversation.id": event.session_id,
                f"{NAME}.tokens_before": event.data["tokens"],
                f"{NAME}.messages": event.data["messages"],
            },
        )
        self._open[event.session_id] = span

    def _on_model_answered(self, event: Event) -> None:
        from opentelemetry.trace import SpanKind, set_span_in_context
        from opentelemetry.trace.status import Status, StatusCode

        data, model = event.data, event.data.get("model")
        common = _called(data)
        parent = self._open.get(event.session_id)
        now = time.time_ns()
        span = self._tracer.start_span(
            f"chat {model}" if model else "chat",
            context=None if parent is None else set_span_in_context(parent),
            kind=SpanKind.CLIENT,
            start_time=now - int(data["seconds"] * 1e9),
            attributes={**common, "gen_ai.conversation.id": event.session_id, **_usage(data)},
        )
        if data.get("error"):
            span.set_status(Status(StatusCode.ERROR))
        span.end(end_time=now)
        self._seconds.record(data["seconds"], common)
        for kind, field in (("input", "prompt_tokens"), ("output", "completion_tokens")):
            if data.get(field):
                self._tokens.record(data[field], {**common, "gen_ai.token.type": kind})

    def _on_fell_back(self, event: Event) -> None:
        self._fallbacks.add(1, _model(event.data.get("model")))

    def _on_committed(self, event: Event) -> None:
        data = event.data
        method = data["method"] or "masks"
        outcome = {f"{NAME}.method": method, f"{NAME}.status": data["status"]}
        self._compressions.add(1, outcome)
        self._removed.add(max(0, data["tokens_before"] - data["tokens_after"]), outcome)
        span = self._open.pop(event.session_id, None)
        if span is None:
            return
        span.set_attributes(
            {
                **outcome,
                **_model(data.get("model")),
                **_usage(data),
                f"{NAME}.tokens_after": data["tokens_after"],
                f"{NAME}.masked": data["masked"],
                f"{NAME}.epoch": data["epoch"],
            }
        )
        if data.get("cost") is not None:
            span.set_attribute(f"{NAME}.cost_usd", data["cost"])
        span.end()

    def _on_abandoned(self, event: Event) -> None:
        from opentelemetry.trace.status import Status, StatusCode

        error = str(event.data["error"])
        self._compressions.add(1, {f"{NAME}.status": "abandoned", "error.type": error})
        span = self._open.pop(event.session_id, None)
        if span is not None:
            span.set_attribute("error.type", error)
            span.set_status(Status(StatusCode.ERROR))
            span.end()


def _called(data: Mapping[str, Any]) -> dict[str, str]:
    """What every signal of one call of a model carries."""
    model = data.get("model")
    found = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _provider(model),
        **_model(model),
    }
    if data.get("response_model"):
        found["gen_ai.response.model"] = str(data["response_model"])
    if data.get("error"):
        found["error.type"] = str(data["error"])
    return found


def _model(model: str | None) -> dict[str, str]:
    return {"gen_ai.request.model": model} if model else {}


def _usage(data: Mapping[str, Any]) -> dict[str, int]:
    names = {
        "gen_ai.usage.input_tokens": "prompt_tokens",
        "gen_ai.usage.output_tokens": "completion_tokens",
        "gen_ai.usage.cache_read.input_tokens": "cache_read_tokens",
    }
    return {name: data[field] for name, field in names.items() if data.get(field)}


def _provider(model: str | None) -> str:
    """Whose a model is: its route in litellm."""
    route, slash, _ = (model or "").lower().partition("/")
    return route if slash else "_OTHER"
