"""mTLS on Kubernetes: each pod gets the one certificate that says who it is, and what it takes to use it.

cert-manager's kinds are in none of the schemas that the tests have: what they say is held against what we mean, field
by field. (When they were written, cert-manager's own definitions found nothing wrong with them.)
"""

import re
from typing import Any, Final

import pytest
import yaml

from tests.k8s.manifests import (
    CLASSES,
    K8S,
    ROOT,
    SERVICES,
    Manifest,
    callers_of,
    component,
    container,
    known_variables,
    name,
    needs_kubectl,
    pod,
    process,
    rendered,
    settings_class,
    shared_settings,
)
from tests.k8s.test_network_policies import labels_of, peers, reaches
from tests.support.contracts import methods_by_caller, permissions_of

FOLDER: Final = K8S / "components" / "mtls"
PRODUCTION: Final = K8S / "overlays" / "production"
COMPONENT: Final[Manifest] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
RESOURCES: Final[list[Manifest]] = [
    document
    for file in COMPONENT["resources"]
    for document in yaml.safe_load_all((FOLDER / file).read_text())
]
CERTIFICATES: Final = [each for each in RESOURCES if each["kind"] == "Certificate"]
OWN: Final = {each["spec"]["dnsNames"][0]: each for each in CERTIFICATES if "dnsNames" in each["spec"]}
(AUTHORITY,) = [each for each in CERTIFICATES if each["spec"].get("isCA")]
PROCESSES: Final = (*CLASSES, "cli")

HEALTH: Final = 50052


def hours(text: str) -> int:
    return int(text.removesuffix("h"))


def test_every_file_is_part_of_the_component() -> None:
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(COMPONENT["resources"])


# -- certificates


def test_every_process_has_a_certificate_and_nobody_else() -> None:
    assert OWN.keys() == set(PROCESSES)
    assert len(CERTIFICATES) == len(PROCESSES) + 1


@pytest.mark.parametrize("process", PROCESSES)
def test_a_certificate_says_who_it_is_for_both_sides_and_is_renewed_with_its_key(process: str) -> None:
    spec = OWN[process]["spec"]
    assert spec == {
        "dnsNames": [process],
        "secretName": f"fiatgate-{process}-tls",
        "duration": spec["duration"],
        "renewBefore": spec["renewBefore"],
        "usages": ["digital signature", "server auth", "client auth"],
        "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
        "issuerRef": {"group": "cert-manager.io", "kind": "Issuer", "name": "fiatgate"},
    }
    assert 24 < hours(spec["renewBefore"]) <= hours(spec["duration"]) / 2 <= 15 * 24


def test_the_alert_comes_when_renewal_has_failed_and_two_days_are_left() -> None:
    (rule,) = re.findall(r"alert: FiatgateCertificateExpires\n\s+expr: (.*)", alerts())
    (alerted,) = re.findall(r"< (\d+) \* 3600", rule)
    assert int(alerted) >= 48
    assert all(int(alerted) < hours(each["spec"]["renewBefore"]) for each in CERTIFICATES)


def alerts() -> str:
    return (ROOT / "deploy" / "observability" / "alerts.yaml").read_text()


def test_the_authority_is_ours_alone_and_keeps_its_key() -> None:
    """A renewed CA of another key would not be believed by those that have the old one, nor the other way round."""
    issuers = {name(each): each["spec"] for each in RESOURCES if each["kind"] == "Issuer"}
    spec = AUTHORITY["spec"]
    assert issuers == {
        "fiatgate-self-signed": {"selfSigned": {}},
        "fiatgate": {"ca": {"secretName": spec["secretName"]}},
    }
    assert spec["issuerRef"]["name"] == "fiatgate-self-signed"
    assert spec["privateKey"]["rotationPolicy"] == "Never"


@pytest.mark.parametrize("service", SERVICES)
def test_callers_find_a_service_by_the_name_in_its_certificate(service: str) -> None:
    """By no other: the namespace, which is in longer names, isn't known here."""
    assert shared_settings()[f"FIATGATE_{service.upper()}_ADDRESS"].startswith(f"{service}:")
    assert callers_of(service) <= OWN.keys()


def test_what_must_be_there_first_is_applied_first() -> None:
    assert {component(each) for each in RESOURCES} == {"setup"}


# -- pods


def deployments() -> list[Manifest]:
    return [each for each in rendered(PRODUCTION) if each["kind"] == "Deployment"]


def variables(deployment: Manifest) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container(deployment)["env"] if "value" in each}


def _own_secrets(spec: Any) -> list[Any]:
    """The secrets that a pod mounts, without the CA of PostgreSQL, which has no key."""
    return [each for each in spec.get("volumes", ()) if "secret" in each and each["name"] != "postgres-ca"]


@needs_kubectl
def test_every_pod_that_talks_has_its_own_certificate_and_no_other() -> None:
    assert {process(each) for each in deployments()} == set(PROCESSES)
    for deployment in deployments():
        mounted = _own_secrets(pod(deployment))
        assert mounted == [{"name": "tls", "secret": {"secretName": f"fiatgate-{process(deployment)}-tls"}}]
        (mount,) = [each for each in container(deployment)["volumeMounts"] if each["name"] == "tls"]
        # With a subPath the kubelet would never replace the files.
        assert mount == {"name": "tls", "mountPath": "/etc/fiatgate/tls", "readOnly": True}
        given = variables(deployment)
        assert [given[f"FIATGATE_TLS_{each}"] for each in ("CA", "CERT", "KEY")] == [
            f"{mount['mountPath']}/{file}" for file in ("ca.crt", "tls.crt", "tls.key")
        ]


@needs_kubectl
def test_what_talks_to_no_service_has_no_certificate() -> None:
    for job in rendered(PRODUCTION):
        if job["kind"] == "Job":
            assert _own_secrets(pod(job)) == []
            assert not [each for each in variables(job) if "TLS" in each]


@needs_kubectl
def test_every_variable_is_a_setting() -> None:
    for deployment in deployments():
        if process(deployment) != "cli":
            assert variables(deployment).keys() <= known_variables(settings_class(deployment))


@needs_kubectl
def test_probes_ask_the_port_without_tls() -> None:
    for deployment in deployments():
        if process(deployment) not in SERVICES:
            continue
        main = container(deployment)
        assert variables(deployment)["FIATGATE_HEALTH_BIND"] == f"0.0.0.0:{HEALTH}"
        assert {"name": "health", "containerPort": HEALTH} in main["ports"]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert main[probe]["grpc"]["port"] == HEALTH


@needs_kubectl
def test_no_other_pod_reaches_the_port_of_the_probes() -> None:
    """The kubelet isn't asked: network policies let a node reach its own pods."""
    for deployment in deployments():
        assert not list(peers(labels_of(deployment), "ingress", HEALTH))


# -- the operator's pod


@needs_kubectl
def test_the_operators_pod_reaches_what_the_command_calls_and_nothing_else() -> None:
    (cli,) = [each for each in deployments() if process(each) == "cli"]
    reached = {
        (process(each), component(each), port)
        for each in deployments()
        for port in (50051, 8080, HEALTH, 9464)
        if reaches(cli, each, port)
    }
    sites = {
        (each, "serve", 8080) for each in ("gateway", "console-desk", "console-dashboard")
    }  # `fiatgate status`
    assert reached == {(service, "serve", 50051) for service in SERVICES} | sites
    for port in (5432, 4222, 443):
        assert not list(peers(labels_of(cli), "egress", port)), "no database, no NATS, no internet"
    assert not list(peers(labels_of(cli), "ingress", 50051))


def test_an_operator_is_nobody_else() -> None:
    for service in SERVICES:
        rows = permissions_of(service)
        named = [caller for caller, methods in methods_by_caller(service).items() if methods == rows.keys()]
        assert named == []
        assert all("cli" in row.callers for row in rows.values())
