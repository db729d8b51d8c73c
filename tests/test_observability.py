"""What is watched from outside: the running stack's metrics, and the dashboard, alerts and documents that name them."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import promql_parser
import pytest
import requests
import yaml
from prometheus_client.parser import text_string_to_metric_families

from deploy.local.waiting import wait_until
from kit.base.services import SERVICES
from tests.support.stack import Stack

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "deploy" / "observability"
ALERTS: Final = (ROOT / "docs" / "operations" / "alerts.md").read_text()
REFERENCE: Final = (ROOT / "docs" / "operations" / "reference.md").read_text()
SEVERITIES: Final = {"critical", "warning"}
ADDED_BY_PROMETHEUS: Final = {"instance", "job"}

Json = dict[str, Any]


# -- what the files name


@cache
def alerts() -> dict[str, Json]:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


@cache
def postgres_alerts() -> dict[str, Json]:
    """Of PostgreSQL by CloudNativePG; tests/k8s/test_postgres.py knows its metrics."""
    groups = yaml.safe_load((FOLDER / "alerts-postgres.yaml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


@cache
def panels() -> list[Json]:
    return [
        panel
        for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]
        if panel["type"] != "row"
    ]


def queries() -> Iterator[tuple[str, str]]:
    """Where it stands, and the query."""
    for name, rule in alerts().items():
        yield name, rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m")


def selectors(query: str) -> list[promql_parser.VectorSelector]:
    """Every metric a query reads; ValueError when it is no PromQL."""
    found: list[promql_parser.VectorSelector] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(promql_parser.parse(query), pre_visit=visit)
    return found


def groupings(query: str) -> list[tuple[set[str], list[promql_parser.VectorSelector]]]:
    """The labels of each `by (…)`, with the metrics below it."""
    found: list[tuple[set[str], list[promql_parser.VectorSelector]]] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            assert node.modifier.type == promql_parser.AggModifierType.By, "this test reads no other"
            found.append((set(node.modifier.labels), selectors(str(node.expr))))

    promql_parser.walk(promql_parser.parse(query), pre_visit=visit)
    return found


# -- what runs


@dataclass(frozen=True)
class Scrape:
    """Of all processes: sample name -> its label names (empty while it has no series), and what each of our families
    says it means.
    """

    labels: Mapping[str, set[str]]
    meanings: Mapping[str, str]
    values: Mapping[tuple[str, frozenset[tuple[str, str]]], float]

    def total(self, name: str, **labels: str) -> float:
        """The sum over all processes and all labels that are not given."""
        wanted = labels.items()
        return sum(value for (each, has), value in self.values.items() if each == name and wanted <= has)


SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_sum", "_count"),
    "gauge": ("",),
}


def scraped(stack: Stack) -> Scrape:
    labels: dict[str, set[str]] = {}
    values: dict[tuple[str, frozenset[tuple[str, str]]], float] = defaultdict(lambda: 0)
    meanings = {}
    for addresses in stack.home.running_stack()["metrics"].values():
        for address in addresses:
            text = requests.get(f"http://{address}/metrics", timeout=10).text
            for family in text_string_to_metric_families(text):
                if family.name.startswith("fiatgate_"):
                    meanings[family.name] = family.documentation
                for suffix in SUFFIXES[family.type]:
                    labels.setdefault(family.name + suffix, set())
                for sample in family.samples:
                    labels[sample.name] |= sample.labels.keys()
                    values[sample.name, frozenset(sample.labels.items())] += sample.value
    return Scrape(labels, meanings, values)


def test_every_process_answers_scrapes(stack: Stack) -> None:
    now = scraped(stack)
    processes = {
        service: now.total("fiatgate_build_info", service=service)
        for service in (*SERVICES, "gateway", "console-desk", "console-dashboard")
    }
    assert processes == {
        **dict.fromkeys((*SERVICES, "console-desk", "console-dashboard"), 1),
        "gateway": 1,
    }
    for service in SERVICES:
        assert now.total("fiatgate_database_up", service=service) == 1
        assert now.total("fiatgate_db_pool_connections", service=service, state="limit") > 0


def test_all_services_but_identity_exchange_heads_with_it(stack: Stack) -> None:
    """It would refuse its own head, which is a critical alert for ever."""
    exchanging = {
        dict(labels)["service"]
        for name, labels in scraped(stack).values
        if name == "fiatgate_worker_healthy" and ("worker", "act-heads") in labels
    }
    assert exchanging == set(SERVICES) - {"identity"}


def test_requests_are_counted_by_route_and_code_and_calls_by_reason(stack: Stack) -> None:
    before = scraped(stack)
    stack.request("GET", "/api/v1/invoices/nobody-s", api_key="fg_nobody")
    stack.request("GET", "/made/up/by/the/client")
    after = scraped(stack)

    def grew(name: str, **labels: str) -> float:
        return after.total(name, **labels) - before.total(name, **labels)

    route = "/api/v1/invoices/{invoice_ref}"
    assert grew("fiatgate_http_requests_total", route=route, status="403", code="API_KEY_INVALID") == 1
    assert grew("fiatgate_http_request_seconds_count", route=route, method="GET") == 1
    assert grew("fiatgate_http_requests_total", route="none", method="", code="NOT_FOUND") == 1
    authenticate = "/fiatgate.merchants.v1.MerchantsService/Authenticate"
    assert grew("fiatgate_rpc_calls_total", method=authenticate, reason="API_KEY_INVALID") == 1


def test_a_client_can_not_make_series(stack: Stack) -> None:
    """Every value of a label is one of ours: neither a path nor a method that somebody made up."""
    for path in ("/healthz", "/api/v1/invoices", "/pay/nobody-s", "/made/up"):
        stack.request("BREW", path, api_key="fg_nobody")
    told = {value for _, labels in scraped(stack).values for name, value in labels if name == "method"}
    assert not {each for each in told if "BREW" in each}


def test_a_purchase_is_seen_on_its_whole_way(stack: Stack) -> None:
    """From the invoice over the outbox and both consumers to the delivery."""
    before = scraped(stack)
    stack.cli("demo", "--anyway")
    steps = [
        (
            "fiatgate_rpc_calls_total",
            {"method": "/fiatgate.invoices.v1.InvoicesService/CreateInvoice", "code": "OK"},
        ),
        ("fiatgate_outbox_published_total", {}),
        ("fiatgate_events_total", {"consumer": "withdrawals-invoices-finished", "outcome": "handled"}),
        ("fiatgate_events_total", {"consumer": "webhooks-invoices-finished", "outcome": "handled"}),
        ("fiatgate_webhook_attempts_total", {"verdict": "delivered"}),
        ("fiatgate_webhook_attempt_seconds_count", {}),
    ]

    def all_grew() -> bool:
        after = scraped(stack)
        return all(after.total(name, **labels) > before.total(name, **labels) for name, labels in steps)

    wait_until(all_grew, "every step in the counters", timeout_seconds=15)
    assert scraped(stack).total("fiatgate_ledger_checked_timestamp_seconds") > 0


# -- what is named is there


def test_every_metric_of_the_dashboard_and_the_alerts_is_in_a_scrape(stack: Stack) -> None:
    there = scraped(stack).labels
    missing = {
        (place, selector.name)
        for place, query in queries()
        for selector in selectors(query)
        if selector.name not in there
    }
    assert not missing, "it would show nothing, and warn of nothing, for ever"


def test_every_label_that_is_asked_for_is_there(stack: Stack) -> None:
    there = scraped(stack).labels
    missing = {
        (place, selector.name, matcher.name)
        for place, query in queries()
        for selector in selectors(query)
        for matcher in selector.matchers.matchers
        if there[selector.name or ""] and matcher.name not in there[selector.name or ""] | ADDED_BY_PROMETHEUS
    }
    assert not missing, "a matcher of a label that nothing has matches nothing"


def test_every_label_that_is_grouped_by_is_there(stack: Stack) -> None:
    there = scraped(stack).labels
    missing = {
        (place, label)
        for place, query in queries()
        for labels, below in groupings(query)
        if any(there[each.name or ""] for each in below)
        for label in labels - ADDED_BY_PROMETHEUS.union(*(there[each.name or ""] for each in below))
    }
    assert not missing, "all would be one group, under an empty name"


def test_a_legend_names_labels_that_the_query_leaves() -> None:
    for panel in panels():
        for target in panel["targets"]:
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            left = set().union(
                *(labels for labels, _ in groupings(target["expr"].replace("$__rate_interval", "5m")))
            )
            assert named <= left, panel["title"]


@pytest.mark.parametrize("query", ["sum(rate(up[5m])", "max by service (up)", "up > > 1"])
def test_a_query_that_is_wrong_is_noticed(query: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        selectors(query)


def test_a_query_names_its_metrics() -> None:
    query = 'sum(rate(a_total{b="c"}[5m])) / sum(d) > 1 or absent(e)'
    assert sorted(selector.name or "" for selector in selectors(query)) == ["a_total", "d", "e"]


# -- what is there is explained


def test_every_metric_is_explained(stack: Stack) -> None:
    ours = scraped(stack).meanings
    assert len(ours) > 25
    unknown = {
        each
        for each in ours
        if f"`{each}`" not in REFERENCE and f"`{each[len('fiatgate_') :]}`" not in REFERENCE
    }
    assert not unknown, "in no table of docs/operations/reference.md"


def test_every_metric_says_what_it_is(stack: Stack) -> None:
    """In a scrape itself, where whoever meets a name for the first time reads it."""
    meanings = scraped(stack).meanings
    assert len(meanings) > 25
    assert not {name for name, meaning in meanings.items() if len(meaning) < 10 or name in meaning}


@pytest.mark.parametrize("name", [*alerts(), *postgres_alerts()])
def test_an_alert_tells_how_bad_it_is_and_what_to_do(name: str) -> None:
    rule = {**alerts(), **postgres_alerts()}[name]
    assert rule["labels"]["severity"] in SEVERITIES
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["runbook_url"] == f"docs/operations/alerts.md#{name.lower()}"


def test_every_alert_has_its_paragraph_and_every_paragraph_its_alert() -> None:
    sections = re.findall(r"^### (Fiatgate\w+)\n\n(.+)", ALERTS, re.MULTILINE)
    assert sections and {name for name, _ in sections} == {*alerts(), *postgres_alerts()}


def test_every_panel_has_a_title_a_unit_and_says_where_its_figures_come_from() -> None:
    for panel in panels():
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        for what in (panel, *panel["targets"]):
            assert what["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]


def test_the_dashboard_has_no_panel_over_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())


@pytest.mark.parametrize("alert", ["FiatgateMethodCrowded", "FiatgateMethodFull"])
def test_a_method_of_one_place_does_not_alert_because_somebody_pays(alert: str) -> None:
    """PromQL's `>` leaves out the series that are not greater; a comparison with the rest finds no partner for them."""
    assert "(max by (method) (fiatgate_method_places) > 1)" in alerts()[alert]["expr"]
