"""What the Prometheus operator is told is what deploy/observability says and what the pods have."""

import json
import re
from typing import Final

import yaml

from tests.k8s.manifests import (
    DEPLOYMENTS,
    K8S,
    ROOT,
    Manifest,
    container,
    name,
    needs_kubectl,
    on_deployments,
    rendered,
)
from tools import rules

FOLDER: Final = K8S / "components" / "monitoring"
(MONITOR,) = yaml.safe_load_all((FOLDER / "pods.yaml").read_text())
# What a PodMonitor puts on every series; one of ours with such a name would become exported_*.
TARGET_LABELS: Final = {"namespace", "pod", "container", "endpoint"}


def test_the_rules_are_those_of_the_observability_folder() -> None:
    for path, text in rules.resources().items():
        assert path.read_text() == text, "run `make docs`"
    for source, made in ((rules.ALERTS, rules.RULES), (rules.POSTGRES_ALERTS, rules.POSTGRES_RULES)):
        groups = yaml.safe_load(made.read_text())["spec"]["groups"]
        assert groups == yaml.safe_load(source.read_text())["groups"]


def test_no_alert_reads_a_label_that_the_monitor_overwrites() -> None:
    grouped = re.findall(r"(?:by|on|without) \(([^)]*)\)", rules.ALERTS.read_text())
    assert grouped
    assert not {label.strip() for each in grouped for label in each.split(",")} & TARGET_LABELS


@on_deployments
def test_every_port_with_metrics_is_scraped(deployment: Manifest) -> None:
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (expression,) = MONITOR["spec"]["selector"]["matchExpressions"]
    assert labels[expression["key"]] in expression["values"]
    named = {port["name"] for port in container(deployment)["ports"] if port["name"].startswith("metrics")}
    assert named <= {each["port"] for each in MONITOR["spec"]["podMetricsEndpoints"]}


def test_no_port_is_scraped_that_nobody_has() -> None:
    named = {port["name"] for each in DEPLOYMENTS for port in container(each)["ports"]}
    assert {each["port"] for each in MONITOR["spec"]["podMetricsEndpoints"]} <= named


@needs_kubectl
def test_grafana_finds_the_dashboard() -> None:
    (dashboard,) = [
        each for each in rendered(ROOT / "deploy" / "observability") if each["kind"] == "ConfigMap"
    ]
    assert name(dashboard) == "fiatgate-dashboard"
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    original = (ROOT / "deploy" / "observability" / "dashboard.json").read_text()
    assert json.loads(dashboard["data"]["fiatgate.json"]) == json.loads(original)
