"""Traces: made and sent when they are on, nothing at all when they are off, in nobody's way when nobody takes them."""

import json
import logging
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from kit.base.config.processes import Settings
from kit.base.services import SERVICES
from kit.observe import log, tracing
from kit.observe.otel import DROPPED
from kit.rpc.errors import not_found
from tests.support.collector import Collected, Collector

ROOT = Path(__file__).parents[2]
MADE = 10_000
QUEUE_HOLDS, BATCH_HOLDS = 2048, 512  # as OpenTelemetry has it
THEIRS = f"00-{'ab' * 16}-{'cd' * 8}-01"

Start = Callable[..., None]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Traces on in this process, until the test ends."""

    def begin(endpoint: str, *, ratio: str = "1") -> None:
        tracing.start("tests", Settings(traces_endpoint=endpoint, traces_ratio=Decimal(ratio)))

    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")  # sent when it stops, or a batch is full
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    yield begin
    tracing.stop()


def sent(collector: Collector) -> dict[str, Collected]:
    """Everything that was made, by its name."""
    tracing.stop()
    return {span.name: span for span in collector.spans}


# -- off


def test_without_the_setting_nothing_of_opentelemetry_is_imported() -> None:
    script = f"""
import importlib, sys
for service in {SERVICES!r}:
    importlib.import_module(f"services.{{service}}.__main__")
import cli.__main__, gateway.__main__
from kit.base.config.processes import Settings
from kit.observe import tracing
tracing.start("tests", Settings())
with tracing.begun("a", "server") as first, tracing.span("b", "client") as part:
    part.set_attribute("c", 1)
    assert tracing.traceparent() == tracing.outgoing() == part.traceparent == first.traceparent == ""
    assert not tracing.ids()
tracing.stop()
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env={}, check=True, timeout=60)


def test_the_collector_has_the_standard_variable_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://standard:4318/")
    assert Settings().traces_endpoint == "http://standard:4318"
    monkeypatch.setenv("FIATGATE_TRACES_ENDPOINT", "http://ours:4318")
    assert Settings().traces_endpoint == "http://ours:4318"


@pytest.mark.parametrize(
    "wrong",
    ["collector:4317", "grpc://collector:4317", "http://", "http://user:hunter2@collector", "http://c?a=b"],
)
def test_an_address_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="expected http"):
        Settings(traces_endpoint=wrong)


# -- on


def test_what_was_made_is_sent_at_the_stop_with_who_made_it(start: Start, collector: Collector) -> None:
    start(collector.url)
    with tracing.begun("request", "server", attributes={"a": "b"}) as first:
        with tracing.span("call", "client") as part:
            part.set_attribute("status", 200)
        first.rename("renamed")

    spans = sent(collector)
    assert spans["call"].parent_id == spans["renamed"].span_id and not spans["renamed"].parent_id
    assert (spans["renamed"].kind, spans["renamed"].attributes) == ("server", {"a": "b"})
    assert (spans["call"].kind, spans["call"].attributes) == ("client", {"status": 200})
    resource = spans["call"].resource
    assert resource["service.name"] == "fiatgate-tests"
    assert resource["service.version"] and resource["service.instance.id"].startswith(socket.gethostname())


def test_a_part_is_only_made_inside_a_trace(start: Start, collector: Collector) -> None:
    start(collector.url)
    with tracing.span("alone", "client"):
        assert tracing.traceparent() == ""
    with tracing.begun("request", "server"):
        pass
    assert sent(collector).keys() == {"request"}


def test_a_trace_goes_on_in_another_process(start: Start, collector: Collector) -> None:
    start(collector.url)
    with tracing.continued("there", "server", THEIRS) as span:
        assert tracing.traceparent() == span.traceparent
        assert tracing.ids() == tracing.ids_of(span.traceparent) != {}
    there = sent(collector)["there"]
    assert (there.trace_id, there.parent_id) == ("ab" * 16, "cd" * 8)
    assert tracing.ids_of(span.traceparent) == {"trace_id": there.trace_id, "span_id": there.span_id}


@pytest.mark.parametrize(
    "nonsense",
    [
        "",
        "00",
        THEIRS[:-3],
        f"00-{'0' * 32}-{'cd' * 8}-01",
        f"00-{'ab' * 16}-{'0' * 16}-01",
        "é" * 55,
        "x" * 100_000,
    ],
)
def test_a_traceparent_that_is_none_begins_a_trace(start: Start, collector: Collector, nonsense: str) -> None:
    start(collector.url)
    with tracing.continued("there", "server", nonsense):
        pass
    with tracing.begun("linked", "server", nonsense):
        pass
    spans = sent(collector)
    assert not spans["there"].parent_id
    assert not spans["linked"].linked


def test_a_strangers_trace_is_linked_to_and_decides_nothing(start: Start, collector: Collector) -> None:
    start(collector.url)
    with tracing.begun("request", "server", linked_to=THEIRS.replace("-01", "-00")):
        pass
    request = sent(collector)["request"]
    assert request.linked == ["ab" * 16]
    assert request.trace_id != "ab" * 16 and not request.parent_id


def test_of_a_trace_all_is_sampled_or_nothing(start: Start, collector: Collector) -> None:
    start(collector.url, ratio="0")
    with tracing.begun("ours", "server"), tracing.span("part", "client"):
        assert int(tracing.outgoing()[-2:], 16) & 1 == 0  # the flag "sampled"
    with tracing.begun("stranger's", "server", linked_to=THEIRS):
        pass
    with tracing.continued("sampled elsewhere", "server", THEIRS):
        pass
    assert sent(collector).keys() == {"sampled elsewhere"}


def test_a_call_of_no_trace_begins_none_where_it_goes(start: Start, collector: Collector) -> None:
    start(collector.url)
    with tracing.continued("asked by a loop", "server", tracing.outgoing()), tracing.span("part", "client"):
        pass
    assert sent(collector) == {}


def test_a_failure_tells_its_class_and_a_refusal_is_none(start: Start, collector: Collector) -> None:
    start(collector.url)
    with tracing.begun("request", "server"):
        with pytest.raises(ValueError, match="hunter2"), tracing.span("broken", "client"):
            raise ValueError("hunter2")
        with pytest.raises(Exception, match="hunter2"), tracing.span("refused", "client"):
            raise not_found("INVOICE_NOT_FOUND", "hunter2")
    spans = sent(collector)
    assert spans["broken"].failed and spans["broken"].attributes == {"error.type": "ValueError"}
    assert not spans["refused"].failed and not spans["request"].failed
    assert b"hunter2" not in b"".join(collector.bodies)


def test_log_lines_have_the_ids_of_the_current_span(
    start: Start, collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = logging.getLogger().handlers[:]
    log.configure("tests", Settings())
    start(collector.url)
    with tracing.begun("request", "server") as span:
        log.get_logger().info("inside")
        log.get_logger().info("of another", trace_id="theirs")
    log.get_logger().info("outside")
    inside, other, outside = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    logging.getLogger().handlers[:] = handlers
    structlog.reset_defaults()
    assert {name: inside[name] for name in ("trace_id", "span_id")} == tracing.ids_of(span.traceparent)
    assert other["trace_id"] == "theirs"
    assert "trace_id" not in outside


# -- the collector away


@pytest.fixture
def silent() -> Iterator[str]:
    """Something that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_collector_that_hangs_holds_up_neither_work_nor_the_stop_and_what_is_dropped_is_counted(
    start: Start, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")  # longer than a test may last
    before = DROPPED._value.get()
    with capture_logs() as lines:
        start(silent)
        for _ in range(MADE):
            with tracing.begun("request", "server"):
                pass
    tracing.stop()
    dropped = DROPPED._value.get() - before
    assert MADE - QUEUE_HOLDS - BATCH_HOLDS <= dropped <= MADE - QUEUE_HOLDS
    assert [each["event"] for each in lines] == ["traces_dropped"]


def test_a_collector_that_is_away_is_told_once_and_so_is_its_return(
    start: Start, collector: Collector, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    structlog.configure(processors=[structlog.processors.JSONRenderer()])
    collector.refuse(3)
    start(collector.url)
    for number in range(5):
        with tracing.begun(f"request {number}", "server"):
            pass
        collector.wait_for_requests(number + 1)
    tracing.stop()
    structlog.reset_defaults()
    told = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["traces_not_sent", "traces_resumed"]
    assert {span.name for span in collector.spans} == {"request 3", "request 4"}
