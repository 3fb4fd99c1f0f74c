"""OpenTelemetry: spans and metrics by the GenAI conventions, and never a word of a conversation."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import opentelemetry.semconv._incubating.attributes.gen_ai_attributes as conventions
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import praison_compressor
from praison_compressor import (
    CompressorConfig,
    ContextCompressor,
    Event,
    MemoryStore,
    StoreUnavailable,
    Telemetry,
)
from praison_compressor.testing import Failure, SummaryModel
from tests.helpers.transcripts import audit

SESSION = "audit-7"
DOCS = Path(praison_compressor.__file__).parent / "docs" / "telemetry.md"
DASHBOARD = DOCS.with_name("dashboard.json")
INSTRUMENTS = (
    "gen_ai.client.token.usage",
    "gen_ai.client.operation.duration",
    "praison_compressor.compressions",
    "praison_compressor.tokens.removed",
    "praison_compressor.fallbacks",
)


class Seen:
    """What an application's exporters got."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def seen():
    return Seen()


def compressor(seen: Seen, store: Any = None, **options: Any) -> ContextCompressor:
    given = {"model": "gpt-4o", "context_window": 8_000, "protect_last_n_tokens": 1_000}
    policies = {"tool_policies": {"*": "summarize"}}
    config = CompressorConfig(**{**given, **policies, **options})
    telemetry = Telemetry(tracers=seen.tracers, meters=seen.meters)
    return ContextCompressor(config, telemetry=telemetry, store=store)


@pytest.fixture
def aux(provider):
    """Return a model that writes summaries, over real HTTP."""
    provider.answer_with(SummaryModel(facts=r"FACT-\d+"))
    return {
        "auxiliary_model": "openai/writer",
        "auxiliary_api_base": provider.base_url,
        "auxiliary_api_key": "sk",
        "summary_max_retries": 0,
    }


@pytest.fixture
def result(seen, aux):
    """Return the result of one compression by the model."""
    return compressor(seen, **aux).compress_sync(audit(), session_id=SESSION)


def test_a_compression_is_a_span(seen, result):
    """A compression's span has its session, model, usage, sizes, method and epoch."""
    (parent,) = seen.named("compress_context")
    found = dict(parent.attributes or {})
    assert result.usage.prompt_tokens > 0 < result.usage.completion_tokens
    assert found["praison_compressor.tokens_before"] > result.tokens_after
    expected = {
        "gen_ai.operation.name": "compress_context",
        "gen_ai.conversation.id": SESSION,
        "gen_ai.request.model": "openai/writer",
        "gen_ai.usage.input_tokens": result.usage.prompt_tokens,
        "gen_ai.usage.output_tokens": result.usage.completion_tokens,
        "praison_compressor.tokens_after": result.tokens_after,
        "praison_compressor.status": "summarized",
        "praison_compressor.method": "model",
        "praison_compressor.epoch": result.session_id,
    }
    assert {name: found[name] for name in expected} == expected


def test_a_model_call_is_a_child_span(seen, result):
    """A call of the model is a client span within the compression's span, with its usage."""
    (parent,) = seen.named("compress_context")
    (child,) = seen.named("chat openai/writer")
    assert child.kind is SpanKind.CLIENT
    assert child.parent.span_id == parent.context.span_id
    assert parent.start_time <= child.start_time <= child.end_time <= parent.end_time
    attributes = dict(child.attributes or {})
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.provider.name"] == "openai"
    assert attributes["gen_ai.usage.input_tokens"] == result.usage.prompt_tokens


def test_a_compression_is_counted(seen, result):
    """The metrics have a compression's usage, duration, method and removed tokens."""
    points = seen.points("gen_ai.client.token.usage")
    assert {point.attributes["gen_ai.token.type"]: point.sum for point in points} == {
        "input": result.usage.prompt_tokens,
        "output": result.usage.completion_tokens,
    }
    (duration,) = seen.points("gen_ai.client.operation.duration")
    assert (duration.count, duration.explicit_bounds[:3]) == (1, (0.01, 0.02, 0.04))
    (compressions,) = seen.points("praison_compressor.compressions")
    assert compressions.value == 1
    assert compressions.attributes["praison_compressor.method"] == "model"
    (removed,) = seen.points("praison_compressor.tokens.removed")
    assert removed.value == pytest.approx(result.tokens_saved, abs=5)


def test_a_span_has_no_word_of_the_conversation(seen, result):
    """No span has a word of the transcript or of the summary."""
    exported = str([(s.name, dict(s.attributes or {}), s.events, s.status) for s in seen.spans])
    assert "compress_context" in exported
    assert "LEDGER" not in exported
    assert "FACT-" not in exported


class Full(MemoryStore):
    """A store whose disk is full."""

    def commit(self, *given: Any) -> Any:
        raise StoreUnavailable("no space left")


@pytest.fixture
def three(seen, aux, provider):
    """Run a compression that succeeds, one whose model refuses, and one whose store does."""
    compressor(seen, **aux).compress_sync(audit())
    provider.answer_with(lambda asked: Failure(401, "no such key"))
    compressor(seen, **aux).compress_sync(audit())
    with pytest.raises(StoreUnavailable):
        compressor(seen, store=Full()).compress_sync(audit())
    return seen


def test_failures_are_errors_of_their_kind_and_end_their_spans(three):
    """A failure ends its own span as an error of its kind."""
    _, call = three.named("chat openai/writer")
    _, static, abandoned = three.named("compress_context")
    assert call.status.status_code is abandoned.status.status_code is StatusCode.ERROR
    assert static.status.status_code is StatusCode.UNSET
    assert (call.attributes or {})["error.type"] == "auth"
    assert (static.attributes or {})["praison_compressor.method"] == "static"
    assert (abandoned.attributes or {})["error.type"] == "StoreUnavailable"
    assert three.points("praison_compressor.fallbacks")[0].value == 1
    counted = [point.attributes for point in three.points("praison_compressor.compressions")]
    assert [found.get("error.type") for found in counted] == [None, None, "StoreUnavailable"]


def test_exported_names_are_conventional_or_documented(three):
    """Every exported name is in the GenAI conventions or in our documentation."""
    known = {v for k, v in vars(conventions).items() if k.startswith("GEN_AI") and v != ""}
    known.add("error.type")
    names = {name for span in three.spans for name in span.attributes or {}}
    for metric in ("gen_ai.client.token.usage", "gen_ai.client.operation.duration"):
        names |= {name for point in three.points(metric) for name in point.attributes}
    theirs = {str(name) for name in names if not name.startswith("praison_compressor.")}
    assert len(names) > len(theirs) > 3
    assert theirs <= known
    text, names = DOCS.read_text("utf-8"), {"compress_context", *INSTRUMENTS, *names}
    short = {name.removeprefix("praison_compressor") for name in names}
    assert [name for name in sorted(short) if f"{name}`" not in text] == []


def test_the_applications_span_is_the_parent(seen):
    """A compression's span is a child of the application's span."""
    tracer = seen.tracers.get_tracer("application")

    async def turn() -> None:
        with tracer.start_as_current_span("turn"):
            await compressor(seen).compress(audit())

    asyncio.run(turn())
    (outer,), (inner,) = seen.named("turn"), seen.named("compress_context")
    assert inner.parent.span_id == outer.context.span_id


def test_a_failing_exporter_ends_no_compression(seen):
    """A failing exporter or unknown event ends no compression."""

    class Broken:
        def get_tracer(self, *args: Any, **more: Any) -> Any:
            raise RuntimeError("exporter")

    config = CompressorConfig(model="gpt-4o", context_window=8_000)
    made = ContextCompressor(config, telemetry=Telemetry(tracers=Broken(), meters=Broken()))
    assert made.compress_sync(audit()).context_status == "summarized"
    Telemetry(tracers=seen.tracers)(Event("committed", SESSION, {}))


@pytest.mark.parametrize("is_there", [True, False])
def test_opentelemetry_is_imported_at_a_compression(is_there):
    """OpenTelemetry is imported at the first compression and may be absent."""
    code = f"""
import sys
if not {is_there}:
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "opentelemetry":
                raise ModuleNotFoundError(name)
    sys.meta_path.insert(0, Absent())
from praison_compressor import CompressorConfig, ContextCompressor
made = ContextCompressor(CompressorConfig(model="gpt-4o", context_window=8_000))
said = [{{"role": "user", "content": "The shelf holds boxes. " * 60 + str(n)}} for n in range(60)]
made.compress_sync(said[:2])
before = "opentelemetry" in sys.modules
print(before, made.compress_sync(said).context_status, "opentelemetry" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "summarized", str(is_there)]
    assert done.stderr == ""


def test_the_dashboard_asks_for_what_is_exported(three):
    """The dashboard's queries name exported series and labels."""
    endings = {"compressions": "_total", "removed": "_total", "fallbacks": "_total"}
    endings |= {"usage": "_sum", "duration": "_seconds_bucket"}
    series = {re.sub(r"\W", "_", n) + endings[n.rpartition(".")[2]]: n for n in INSTRUMENTS}
    asked = [p["targets"][0]["expr"] for p in json.loads(DASHBOARD.read_text("utf-8"))["panels"]]
    used = {name for query in asked for name in series if name in query}
    assert used == set(series)
    for query in asked:
        (name,) = (each for each in series if each in query)
        points = three.points(series[name])
        held = {re.sub(r"\W", "_", key) for point in points for key in point.attributes} | {"le"}
        by = re.search(r"by \(([^)]*)\)", query)
        labels = {*re.split(r", ?", by[1]), *re.findall(r"(\w+)[!=]?=\"", query)}
        assert labels <= held
