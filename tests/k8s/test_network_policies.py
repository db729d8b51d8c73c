"""The network policies allow what the code does, and nothing else: both are read, every pair of pods is tried."""

import ipaddress
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pytest
import yaml

from kit.egress.address import GLOBAL_V6, NOT_PUBLIC_V4, NOT_PUBLIC_V6, is_for_https
from kit.web.config import FOR_EXAMPLES
from tests.k8s.manifests import (
    K8S,
    ROOT,
    SERVICES,
    WORKLOADS,
    Manifest,
    callers_of,
    component,
    container,
    kustomization,
    name,
    needs_kubectl,
    of_kind,
    on_workloads,
    process,
    rendered,
    shared_settings,
)

FOLDER: Final = K8S / "components" / "network-policies"
POLICIES: Final[list[Manifest]] = [
    document
    for file in yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    for document in yaml.safe_load_all((FOLDER / file).read_text())
]
GRPC: Final = 50051
HTTP: Final = 8080
POSTGRESQL: Final = 5432
NATS: Final = 4222
PORTS: Final = (GRPC, HTTP, POSTGRESQL, NATS, 53, 80, 443, 9464, 9465)

Way = Literal["ingress", "egress"]
Labels = Mapping[str, str]
Peer = dict[str, Any]
UNNAMED: Final[Peer] = {"ipBlock": {"cidr": "192.0.2.0/24"}}
"""What an overlay must name, of addresses that nobody has: closed until then."""


# -- a network plugin's reading of policies


def labels_of(workload: Manifest) -> Labels:
    """As the base renders them: with the label that all have in common."""
    (common,) = kustomization()["labels"]
    assert common["includeTemplates"]
    return {**workload["spec"]["template"]["metadata"]["labels"], **common["pairs"]}


def selects(selector: Manifest, labels: Labels) -> bool:
    assert selector.keys() <= {"matchLabels", "matchExpressions"}
    expressions = selector.get("matchExpressions", ())
    assert all(each["operator"] == "In" for each in expressions), "this test reads no other"
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in expressions
    )


def rules(labels: Labels, way: Way) -> Iterator[Manifest]:
    for policy in POLICIES:
        spec = policy["spec"]
        if selects(spec["podSelector"], labels) and way.capitalize() in spec["policyTypes"]:
            yield from spec.get(way, ())


def opens(ports: Manifest, port: int) -> bool:
    first = int(ports["port"])
    return first <= port <= int(ports.get("endPort") or first)


def peers(labels: Labels, way: Way, port: int) -> Iterator[Peer]:
    """With whom it may talk on the port."""
    for rule in rules(labels, way):
        if any(opens(each, port) for each in rule["ports"]):
            yield from rule["from" if way == "ingress" else "to"]


def may(labels: Labels, way: Way, other: Labels, port: int) -> bool:
    return any(
        "podSelector" in peer and selects(peer["podSelector"], other) for peer in peers(labels, way, port)
    )


def reaches(source: Manifest, target: Manifest, port: int) -> bool:
    ours, theirs = labels_of(source), labels_of(target)
    return may(ours, "egress", theirs, port) and may(theirs, "ingress", ours, port)


# -- what the code does


def folder(workload: Manifest) -> str:
    return (
        f"services/{process(workload)}"
        if process(workload) in SERVICES
        else process(workload).partition("-")[0]
    )


def code(workload: Manifest) -> str:
    return "\n".join(path.read_text() for path in sorted((ROOT / folder(workload)).rglob("*.py")))


def uses_nats(workload: Manifest) -> bool:
    return component(workload) != "migrate" and "settings.nats_url" in code(workload)


def calls_the_internet(workload: Manifest) -> bool:
    """Whoever serves does too: a manual resend, and `fiatgate rates pull`, happen within their call."""
    return component(workload) != "migrate" and "import Egress" in code(workload)


def has_database(workload: Manifest) -> bool:
    return process(workload) in SERVICES


# -- the two are the same


def test_every_file_is_part_of_the_component() -> None:
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"])


@on_workloads
def test_nothing_is_open_that_no_policy_opens(workload: Manifest) -> None:
    closed = {
        way
        for policy in POLICIES
        for way in policy["spec"]["policyTypes"]
        if selects(policy["spec"]["podSelector"], labels_of(workload))
    }
    assert closed == {"Ingress", "Egress"}


def test_the_deny_selects_all_pods_of_ours_whatever_they_are() -> None:
    (deny,) = [each for each in POLICIES if name(each) == "fiatgate-deny-all"]
    assert deny["spec"] == {
        "podSelector": {"matchLabels": kustomization()["labels"][0]["pairs"]},
        "policyTypes": ["Ingress", "Egress"],
    }


@on_workloads
def test_it_reaches_those_it_calls_and_no_others(workload: Manifest) -> None:
    called = {service for service in SERVICES if process(workload) in callers_of(service)}
    expected = {(service, "serve", GRPC) for service in called if component(workload) != "migrate"}
    if process(workload) == "console-desk":  # the page Health
        expected |= {(each, "serve", HTTP) for each in ("gateway", "console-dashboard")}
    reached = {
        (process(target), component(target), port)
        for target in WORKLOADS
        for port in PORTS
        if target != workload and reaches(workload, target, port)
    }
    assert reached == expected


def test_the_ports_are_those_of_the_settings() -> None:
    shared = shared_settings()
    addresses = {value for key, value in shared.items() if key.endswith("_ADDRESS")}
    assert {address.rpartition(":")[2] for address in addresses} == {str(GRPC)}


@on_workloads
def test_the_database_is_for_those_that_have_one(workload: Manifest) -> None:
    assert (UNNAMED in peers(labels_of(workload), "egress", POSTGRESQL)) == has_database(workload)


@on_workloads
def test_nats_is_for_those_that_use_it(workload: Manifest) -> None:
    assert (UNNAMED in peers(labels_of(workload), "egress", NATS)) == uses_nats(workload)
    given = {variable["name"] for variable in container(workload)["env"]}
    assert (f"FIATGATE_{process(workload).upper()}_NATS_URL" in given) == uses_nats(workload)


@on_workloads
def test_only_those_that_call_merchants_and_rate_sources_get_out(workload: Manifest) -> None:
    out = [peer["ipBlock"] for peer in peers(labels_of(workload), "egress", 443) if "ipBlock" in peer]
    assert bool(out) == calls_the_internet(workload)


def test_the_code_that_gets_out_was_found() -> None:
    assert {name(each) for each in WORKLOADS if calls_the_internet(each)} == {
        "catalog",
        "catalog-work",
        "webhooks",
        "webhooks-work",
    }


def test_what_the_code_refuses_to_call_the_network_refuses_too() -> None:
    closed = {str(each) for each in NOT_PUBLIC_V4} | {str(each) for each in NOT_PUBLIC_V6}
    blocks = [peer["ipBlock"] for peer in internet()["to"]]
    assert [each["cidr"] for each in blocks] == ["0.0.0.0/0", str(GLOBAL_V6)]
    assert {network for each in blocks for network in each["except"]} == closed
    refused = {port for port in range(1, 65536) if not is_for_https(port)}
    closed_ports = {
        port for port in range(1, 65536) if not any(opens(each, port) for each in internet()["ports"])
    }
    assert closed_ports <= refused, "the code may call them"
    # Not all that the code refuses: some plugins hold a row for each port and each exception.
    assert closed_ports == {each for each in refused if each < 1024} | {NATS, POSTGRESQL, 6443, GRPC}


def internet() -> Manifest:
    (policy,) = [each for each in POLICIES if name(each) == "fiatgate-internet"]
    (rule,) = policy["spec"]["egress"]
    return dict(rule)


@on_workloads
def test_the_public_reaches_the_gateway_and_the_dashboard_only(workload: Manifest) -> None:
    controller = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}
    visited = controller in peers(labels_of(workload), "ingress", HTTP)
    assert visited == (process(workload) in ("gateway", "console-dashboard"))


def test_the_desk_is_reached_from_the_private_network_only() -> None:
    (desk,) = [each for each in WORKLOADS if name(each) == "console-desk"]
    proxy, operators = peers(labels_of(desk), "ingress", HTTP)
    assert proxy == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "private-proxy"}}}
    cli = {"app.kubernetes.io/name": "cli", "app.kubernetes.io/component": "cli"}
    assert operators == {"podSelector": {"matchLabels": cli}}
    assert not [each for each in of_kind("Ingress") if "desk" in str(each)]


@on_workloads
def test_only_the_worker_of_identity_sends_mail(workload: Manifest) -> None:
    for port in (465, 587):
        to_mail_servers = UNNAMED in peers(labels_of(workload), "egress", port)
        assert to_mail_servers == (name(workload) == "identity-work")


@on_workloads
def test_prometheus_reaches_every_port_with_metrics(workload: Manifest) -> None:
    for port in container(workload).get("ports", ()):
        if port["name"].startswith("metrics"):
            found = list(peers(labels_of(workload), "ingress", port["containerPort"]))
            assert [set(peer) for peer in found] == [{"namespaceSelector"}]


@on_workloads
def test_everybody_may_look_up_names(workload: Manifest) -> None:
    assert any("namespaceSelector" in peer for peer in peers(labels_of(workload), "egress", 53))


@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_policies_are_there_before_the_pods(policy: Manifest) -> None:
    """An install applies `setup` and `migrate` first."""
    assert policy["metadata"]["labels"]["app.kubernetes.io/component"] == "setup"


# -- the demo pod of the overlay `local`


def test_the_demo_pod_is_reached_by_those_that_call_it_and_calls_no_other() -> None:
    documents = list(yaml.safe_load_all((K8S / "overlays" / "local" / "demo.yaml").read_text()))
    (pod,) = [each for each in documents if each["kind"] == "Deployment"]
    own = [each for each in documents if each["kind"] == "NetworkPolicy"]
    labels = pod["spec"]["template"]["metadata"]["labels"]
    assert kustomization()["labels"][0]["pairs"].items() <= labels.items(), "so the deny selects it"
    POLICIES.extend(own)
    try:
        callers = {
            name(each)
            for each in of_kind("Deployment", "Job")
            if may(labels_of(each), "egress", labels, HTTP) and may(labels, "ingress", labels_of(each), HTTP)
        }
        called = [
            each for each in WORKLOADS for port in PORTS if may(labels, "egress", labels_of(each), port)
        ]
    finally:
        del POLICIES[-len(own) :]
    assert callers == {"catalog", "catalog-work", "webhooks", "webhooks-work", "cli"}
    assert not called


# -- what overlays make of it

LOCAL, PRODUCTION = (K8S / "overlays" / each for each in ("local", "production"))
NAMESPACE_OF_NATS: Final = PRODUCTION / "nats"
on_all: Final = pytest.mark.parametrize(
    "overlay", [LOCAL, PRODUCTION, NAMESPACE_OF_NATS], ids=lambda path: path.name
)


def policies(overlay: Path) -> dict[str, Manifest]:
    return {name(each): each["spec"] for each in rendered(overlay) if each["kind"] == "NetworkPolicy"}


@needs_kubectl
@on_all
def test_only_the_rule_for_the_internet_is_open_to_unnamed_hosts(overlay: Path) -> None:
    """A rule without peers or ports, or with an empty selector, is open to all of them."""
    for called, spec in policies(overlay).items():
        for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
            assert rule["ports"], called
            ways = rule.keys() - {"ports"}
            assert ways, f"{called}: without a destination"
            found = [peer for way in ways for peer in rule[way]]
            assert found, called
            for peer in found:
                assert peer and all(peer.values()), f"{called}: an empty selector selects all"
                if "ipBlock" in peer and called != "fiatgate-internet":
                    network = ipaddress.ip_network(peer["ipBlock"]["cidr"])
                    assert network in FOR_EXAMPLES, f"{called}: closed until an overlay names it"


@needs_kubectl
@on_all
def test_every_pod_is_closed_where_nothing_opens_it(overlay: Path) -> None:
    made = [each for each in rendered(overlay) if each["kind"] in ("Deployment", "StatefulSet", "Job")]
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in made]
    pods += [{"cnpg.io/cluster": name(each)} for each in rendered(overlay) if each["kind"] == "Cluster"]
    pods += [{}] if overlay == NAMESPACE_OF_NATS else []  # of its Helm chart
    for labels in pods:
        closed = {
            way
            for spec in policies(overlay).values()
            if selects(spec["podSelector"], labels)
            for way in spec["policyTypes"]
        }
        assert closed == {"Ingress", "Egress"}, labels


@needs_kubectl
@pytest.mark.parametrize(
    ("overlay", "store", "namespace"),
    [
        (LOCAL, "postgres", {}),
        (LOCAL, "nats", {}),
        (PRODUCTION, "postgres", {}),
        (PRODUCTION, "nats", {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "nats"}}}),
    ],
)
def test_the_way_to_a_store_leads_to_the_pods_that_let_its_callers_in(
    overlay: Path, store: str, namespace: Manifest
) -> None:
    there = policies(NAMESPACE_OF_NATS if namespace else overlay)[f"{store}-callers"]
    way = {"postgres": "fiatgate-postgresql", "nats": "fiatgate-nats"}[store]
    (rule,) = policies(overlay)[way]["egress"]
    assert rule["to"] == [{"podSelector": there["podSelector"], **namespace}]


@needs_kubectl
def test_the_production_overlay_asks_for_the_networks_that_only_the_operator_knows() -> None:
    asked = {
        (called, tuple(each["port"] for each in rule["ports"]))
        for called, spec in policies(PRODUCTION).items()
        for rule in spec.get("egress", ())
        if UNNAMED in rule["to"]
    }
    assert asked == {
        ("fiatgate-mail", (465, 587)),
        ("postgres-calls", (443, 6443)),
        ("postgres-calls", (443,)),
    }
    patched = "\n".join(
        str(each) for each in yaml.safe_load((PRODUCTION / "kustomization.yaml").read_text())["patches"]
    )
    assert patched.count(UNNAMED["ipBlock"]["cidr"]) == len(asked), "each has a line to fill in"
