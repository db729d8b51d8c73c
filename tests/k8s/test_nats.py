"""NATS on Kubernetes: the users of deploy/nats_rights.py and no others, TLS in production, and who reaches its pods."""

import asyncio
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import nats.aio.client
import nats.errors
import pytest
import yaml

from deploy import nats_rights
from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from deploy.nats_rights import OPERATOR, PROCESSES, USERS
from tests.k8s.manifests import (
    BASE,
    K8S,
    WORKLOADS,
    Manifest,
    container,
    name,
    needs_kubectl,
    pod,
    process,
    rendered,
)
from tests.k8s.test_network_policies import labels_of, selects, uses_nats

LOCAL, PRODUCTION = (K8S / "overlays" / each for each in ("local", "production"))
NAMESPACE: Final = PRODUCTION / "nats"
VALUES: Final = yaml.safe_load((NAMESPACE / "values.yaml").read_text())
CLIENTS: Final = 4222
ROUTES: Final = 6222
# As NATS' Helm chart labels its pods.
SERVER: Final = {"app.kubernetes.io/name": "nats", "app.kubernetes.io/component": "nats"}
BOX: Final = {"app.kubernetes.io/name": "nats", "app.kubernetes.io/component": "nats-box"}
TELL: Final = "python -m deploy.nats_rights > deploy/k8s/overlays/local/users.conf"


def documents(file: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(file.read_text()))


# -- users


def test_the_processes_that_have_a_user_are_those_that_use_nats() -> None:
    assert {process(each) for each in WORKLOADS if uses_nats(each)} == set(PROCESSES)


def test_each_process_connects_as_itself() -> None:
    secrets = {name(each): each["stringData"] for each in documents(BASE / "secret.example.yaml")}
    urls = {
        secret.removeprefix("fiatgate-"): data["nats-url"]
        for secret, data in secrets.items()
        if "nats-url" in data
    }
    assert {user: urlsplit(url).username for user, url in urls.items()} == {user: user for user in PROCESSES}


def test_in_production_the_users_and_their_rights_are_those_of_the_table() -> None:
    passwords = {user: f"<< ${nats_rights.variable(user)} >>" for user in USERS}
    assert VALUES["config"]["merge"] == {
        "accounts": nats_rights.accounts(passwords),
        "max_control_line": nats_rights.CONTROL_LINE_MOST_BYTES,
    }
    secrets = {
        variable: source["valueFrom"]["secretKeyRef"]
        for variable, source in VALUES["container"]["env"].items()
        if variable != "GOMEMLIMIT"
    }
    assert secrets == {nats_rights.variable(user): {"name": "nats-users", "key": user} for user in USERS}
    (example,) = documents(NAMESPACE / "secret.example.yaml")
    assert (name(example), set(example["stringData"])) == ("nats-users", set(USERS))


def test_locally_the_users_and_their_rights_are_those_of_the_table() -> None:
    assert (LOCAL / "users.conf").read_text() == nats_rights.as_text(), TELL
    assert f"max_control_line: {nats_rights.CONTROL_LINE_MOST_BYTES}\n" in (LOCAL / "nats.conf").read_text()
    env = container(_local_server())["env"]
    assert {each["name"]: each["valueFrom"]["secretKeyRef"] for each in env if "valueFrom" in each} == {
        nats_rights.variable(user): {"name": "nats-users", "key": user} for user in USERS
    }
    overlay = yaml.safe_load((LOCAL / "kustomization.yaml").read_text())
    secrets = {
        each["name"]: dict(literal.split("=", 1) for literal in each["literals"])
        for each in overlay["secretGenerator"]
    }
    assert set(secrets["nats-users"]) == set(USERS)
    for user in PROCESSES:
        url = urlsplit(secrets[f"fiatgate-{user}"]["nats-url"])
        assert (url.username, url.password) == (user, secrets["nats-users"][user])


def _local_server() -> Manifest:
    (server,) = [each for each in documents(LOCAL / "nats.yaml") if each["kind"] == "StatefulSet"]
    return server


def test_the_server_collects_its_garbage_before_the_pod_reaches_its_limit() -> None:
    main = container(_local_server())
    values = {each["name"]: each.get("value", "") for each in main["env"]}
    production = VALUES["container"]
    for given, limit in (
        (values["GOMEMLIMIT"], main["resources"]["limits"]["memory"]),
        (production["env"]["GOMEMLIMIT"], production["merge"]["resources"]["limits"]["memory"]),
    ):
        allowed_mib = (
            int(limit.removesuffix("Gi")) * 1024 if limit.endswith("Gi") else int(limit.removesuffix("Mi"))
        )
        assert allowed_mib / 2 < int(given.removesuffix("MiB")) < allowed_mib * 0.85


def test_a_server_takes_the_local_configuration_and_its_passwords_from_the_environment(
    tmp_path: Path,
) -> None:
    port, monitoring = free_ports(2)
    config = (LOCAL / "nats.conf").read_text()
    for old, new in {
        "port: 4222": f"host: 127.0.0.1\nport: {port}",
        "http_port: 8222": f"http: 127.0.0.1:{monitoring}",
        "store_dir: /data": f"store_dir: {str(tmp_path)!r}",
    }.items():
        assert old in config
        config = config.replace(old, new)
    (tmp_path / "nats.conf").write_text(config)
    (tmp_path / "users.conf").write_text((LOCAL / "users.conf").read_text())
    passwords = {nats_rights.variable(user): f"p0{user}" for user in USERS}
    log = tmp_path / "nats.log"
    command = [
        str(Path(sysconfig.get_path("scripts")) / "nats-server"),
        *("--config", str(tmp_path / "nats.conf"), "--log", str(log)),
    ]
    server = subprocess.Popen(command, env={**os.environ, **passwords})
    try:
        wait_until(lambda: log.exists() and "Server is ready" in log.read_text(), "NATS", timeout_seconds=15)
        for user in USERS:
            asyncio.run(_connects(f"nats://{user}:p0{user}@127.0.0.1:{port}"))
        with pytest.raises(nats.errors.Error, match="Authorization Violation"):
            asyncio.run(_connects(f"nats://invoices:p0{OPERATOR}@127.0.0.1:{port}"))
    finally:
        server.terminate()
        server.wait(20)


async def _connects(url: str) -> None:
    async def quiet(_error: Exception) -> None:
        """It is raised as well."""

    client = nats.aio.client.Client()
    try:
        await client.connect(url, allow_reconnect=False, error_cb=quiet)
    finally:
        await client.close()


# -- TLS in production


def certificates() -> dict[str, Manifest]:
    return {
        name(each): each["spec"]
        for each in documents(NAMESPACE / "certificates.yaml")
        if each["kind"] == "Certificate"
    }


def test_clients_and_servers_of_nats_talk_tls_only() -> None:
    secret = certificates()["nats-server-tls"]["secretName"]
    assert VALUES["config"]["nats"]["tls"] == {"enabled": True, "secretName": secret}
    assert VALUES["config"]["cluster"]["tls"] == {
        "enabled": True,
        "secretName": secret,
        "merge": {"verify": True},
    }
    assert VALUES["tlsCA"] == {"enabled": True, "secretName": secret}


def test_the_certificate_has_the_names_that_clients_and_servers_call() -> None:
    """A pod of the Helm chart calls another one by the headless Service."""
    names = certificates()["nats-server-tls"]["dnsNames"]
    servers = range(VALUES["config"]["cluster"]["replicas"])
    assert {"nats.nats", *(f"nats-{number}.nats-headless" for number in servers)} <= set(names)
    assert set(certificates()["nats-server-tls"]["usages"]) >= {"server auth", "client auth"}


def test_the_authority_of_nats_keeps_its_key() -> None:
    """What Fiatgate's namespace was given of it stays true for ten years."""
    authority = certificates()["nats-ca"]
    assert authority["isCA"] and authority["privateKey"]["rotationPolicy"] == "Never"


@needs_kubectl
def test_in_production_those_that_use_nats_know_its_authority() -> None:
    for deployment in [each for each in rendered(PRODUCTION) if each["kind"] == "Deployment"]:
        who = deployment["metadata"]["labels"]["app.kubernetes.io/name"]
        main, volumes = container(deployment), pod(deployment).get("volumes", ())
        given = {each["name"]: each.get("value", "") for each in main["env"]}
        mounts = {each["name"]: each["mountPath"] for each in main.get("volumeMounts", ())}
        mounted = [each for each in volumes if each["name"] == "nats-ca"]
        if who not in PROCESSES:
            assert "FIATGATE_NATS_CA" not in given and not mounted
            continue
        assert mounted == [{"name": "nats-ca", "configMap": {"name": "fiatgate-nats-ca"}}]
        assert given["FIATGATE_NATS_CA"] == f"{mounts['nats-ca']}/ca.crt"


# -- who reaches it


def peers(policies: list[Manifest], labels: dict[str, str], port: int) -> list[dict[str, Any]]:
    return [
        peer
        for policy in policies
        if selects(policy["spec"]["podSelector"], labels)
        for rule in policy["spec"].get("ingress", ())
        if port in {each["port"] for each in rule["ports"]}
        for peer in rule["from"]
    ]


def callers(found: list[dict[str, Any]]) -> set[str]:
    """Workloads of ours that one of them lets in."""
    return {
        name(each)
        for each in WORKLOADS
        for peer in found
        if "podSelector" in peer and selects(peer["podSelector"], labels_of(each))
    }


EXPECTED: Final = {name(each) for each in WORKLOADS if uses_nats(each)}


def test_in_the_namespace_of_nats_nobody_comes_in_who_is_not_named() -> None:
    policies = documents(NAMESPACE / "network-policies.yaml")
    (deny,) = [each for each in policies if name(each) == "nats-deny-all"]
    assert deny["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}

    found = peers(policies, SERVER, CLIENTS)
    ours = [peer for peer in found if "namespaceSelector" in peer]
    assert {str(peer["namespaceSelector"]) for peer in ours} == {
        str({"matchLabels": {"kubernetes.io/metadata.name": "fiatgate"}})
    }
    assert callers(ours) == EXPECTED
    own = [peer for peer in found if "namespaceSelector" not in peer]
    assert [selects(peer["podSelector"], BOX) for peer in own] == [True]

    (route,) = peers(policies, SERVER, ROUTES)
    assert selects(route["podSelector"], SERVER) and not selects(route["podSelector"], BOX)
    assert not peers(policies, BOX, CLIENTS)

    (calls,) = [each["spec"] for each in policies if "egress" in each["spec"]]
    assert selects(calls["podSelector"], SERVER) and selects(calls["podSelector"], BOX)
    servers, names = calls["egress"]
    assert [selects(each["podSelector"], SERVER) for each in servers["to"]] == [True]
    assert [each["port"] for each in servers["ports"]] == [CLIENTS, ROUTES]
    assert {each["port"] for each in names["ports"]} == {53}


def test_locally_the_pods_that_use_nats_reach_it_and_no_others() -> None:
    (policy,) = [each for each in documents(LOCAL / "nats.yaml") if each["kind"] == "NetworkPolicy"]
    (server,) = [each for each in documents(LOCAL / "nats.yaml") if each["kind"] == "StatefulSet"]
    labels = server["spec"]["template"]["metadata"]["labels"]
    assert callers(peers([policy], labels, CLIENTS)) == EXPECTED
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "egress" not in policy["spec"], "it calls no other"


@needs_kubectl
def test_everything_of_its_namespace_is_applied_together() -> None:
    files = {path.name for path in NAMESPACE.glob("*.yaml")}
    listed = yaml.safe_load((NAMESPACE / "kustomization.yaml").read_text())["resources"]
    assert files - {"kustomization.yaml", "values.yaml", "secret.example.yaml"} == set(listed)
    assert {each["metadata"].get("namespace") for each in rendered(NAMESPACE)} == {"nats", None}
