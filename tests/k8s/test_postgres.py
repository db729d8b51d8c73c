"""PostgreSQL by CloudNativePG in production: what its operator is told fits what the services need.

The fields are held against the definitions of the operator (schemas/cloudnativepg.yaml), the rest against our code.
"""

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import promql_parser
import pytest
import yaml

from deploy.local.databases import CONNECTIONS_OF_AN_OWNER, owner_of
from tests.k8s.manifests import (
    BASE,
    K8S,
    ROOT,
    SERVICES,
    WORKLOADS,
    Manifest,
    component,
    container,
    name,
    needs_kubectl,
    pod,
    process,
    rendered,
)
from tests.k8s.test_network_policies import UNNAMED, has_database, labels_of, selects
from tests.test_observability import postgres_alerts, selectors

PRODUCTION: Final = K8S / "overlays" / "production"
FOLDER: Final = K8S / "components" / "postgres-cloudnativepg"
COMPONENT: Final[Manifest] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
SCHEMAS: Final = yaml.safe_load((Path(__file__).parent / "schemas" / "cloudnativepg.yaml").read_text())
KUBERNETES: Final = (ROOT / "docs" / "operations" / "kubernetes.md").read_text()
RESTORING: Final = (ROOT / "docs" / "operations" / "backup-and-restore.md").read_text()
NODE_LABELS: Final = {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
CA_FILE: Final = "/etc/fiatgate/postgres/ca.crt"
PEERS: Final[dict[str, str]] = {"cnpg.io/cluster": "postgres"}
POSTGRESQL, STATUS, METRICS = 5432, 8000, 9187
# What the exporter of CloudNativePG 1.30 has of these, and the plugin's.
KNOWN_METRICS: Final = {
    "cnpg_collector_up",
    "cnpg_collector_pg_wal_archive_status",
    "cnpg_pg_replication_is_wal_receiver_up",
    "cnpg_pg_replication_lag",
    "cnpg_pg_stat_archiver_last_failed_time",
    "cnpg_pg_stat_archiver_last_archived_time",
    "barman_cloud_cloudnative_pg_io_last_available_backup_timestamp",
}


def documents(file: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(file.read_text()))


OBJECTS: Final = [each for file in COMPONENT["resources"] for each in documents(FOLDER / file)]
(CLUSTER,) = [each for each in OBJECTS if each["kind"] == "Cluster"]
CLUSTER_SPEC: Final[Manifest] = CLUSTER["spec"]
ROLES: Final = {each["name"]: each for each in CLUSTER_SPEC["managed"]["roles"]}


def wrong_with(manifest: Manifest) -> list[str]:
    """What CloudNativePG's definition of the kind does not allow; an unknown kind is a KeyError."""
    known = SCHEMAS[manifest["kind"]]
    found = [] if manifest["apiVersion"] == known["apiVersion"] else [manifest["apiVersion"]]
    validator = jsonschema_rs.Draft202012Validator(known["spec"])
    return found + [error.message for error in validator.iter_errors(manifest["spec"])]


# -- fields


def test_every_file_is_part_of_the_component() -> None:
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml", "secret.example.yaml"}
    assert files == set(COMPONENT["resources"])


@needs_kubectl
def test_it_is_what_the_operator_knows() -> None:
    checked = [each for each in rendered(PRODUCTION) if each["kind"] in SCHEMAS]
    assert {each["kind"] for each in checked} == set(SCHEMAS)
    assert {name(each): wrong for each in checked if (wrong := wrong_with(each))} == {}


@pytest.mark.parametrize(
    "change",
    [
        {"instancs": 3},
        {"primaryUpdateMethod": "swap"},
        {"switchoverDelay": "60"},
        {"postgresql": {"synchronous": {"method": "any"}}},
    ],
)
def test_a_wrong_field_is_noticed(change: dict[str, Any]) -> None:
    assert len(wrong_with({**CLUSTER, "spec": {**CLUSTER_SPEC, **change}})) == 1


# -- what survives


def test_a_commit_is_on_two_of_three_instances_in_three_zones() -> None:
    assert CLUSTER_SPEC["instances"] == 3
    assert CLUSTER_SPEC["postgresql"]["synchronous"] == {
        "method": "any",
        "number": 1,
        "dataDurability": "required",
        "failoverQuorum": True,
    }
    affinity = CLUSTER_SPEC["affinity"]
    assert (affinity["enablePodAntiAffinity"], affinity["podAntiAffinityType"]) == (True, "required")
    assert affinity["topologyKey"] in NODE_LABELS
    assert CLUSTER_SPEC["enablePDB"] is True
    assert "synchronous_commit" not in CLUSTER_SPEC["postgresql"]["parameters"], (
        "the default, on, waits for the other"
    )


def test_an_instance_that_stops_ends_its_connections_at_once() -> None:
    """A smart shutdown would keep those of the services and refuse new ones."""
    assert CLUSTER_SPEC["smartShutdownTimeout"] == 0
    assert CLUSTER_SPEC["switchoverDelay"] <= CLUSTER_SPEC["stopDelay"] <= 120


def test_wal_and_a_base_backup_of_each_night_leave_the_cluster() -> None:
    (store,) = [each for each in OBJECTS if each["kind"] == "ObjectStore"]
    (schedule,) = [each["spec"] for each in OBJECTS if each["kind"] == "ScheduledBackup"]
    (plugin,) = CLUSTER_SPEC["plugins"]
    assert plugin["isWALArchiver"] is True
    assert plugin["parameters"]["barmanObjectName"] == name(store)
    assert plugin["name"] == schedule["pluginConfiguration"]["name"]
    assert (schedule["method"], schedule["cluster"]["name"]) == ("plugin", name(CLUSTER))
    assert len(schedule["schedule"].split()) == 6, "seconds come first"
    assert store["spec"]["retentionPolicy"] == "30d"
    assert CLUSTER_SPEC["postgresql"]["parameters"]["archive_timeout"] == "60s"
    assert set(CLUSTER_SPEC["walStorage"]) == {"size"}, "WAL that piles up must not fill the disk of the data"


@needs_kubectl
def test_in_production_the_bucket_is_the_overlays() -> None:
    (store,) = [each for each in rendered(PRODUCTION) if each["kind"] == "ObjectStore"]
    configuration = store["spec"]["configuration"]
    assert configuration["destinationPath"].startswith("s3://your-bucket/")
    assert configuration["endpointURL"].endswith("your-region.example")


def documented_patches() -> list[list[Manifest]]:
    """The patches of each block in docs/operations/backup-and-restore.md."""
    blocks = re.findall(r"   ```yaml\n(   patches:.*?)   ```", RESTORING, re.DOTALL)
    return [yaml.safe_load(textwrap.dedent(each))["patches"] for each in blocks]


def overlay(
    folder: Path, patches: list[Manifest], *components: str, replacements: Sequence[Manifest] = ()
) -> list[Manifest]:
    """What an overlay of production with these patches, and these parts of the component, makes."""
    # kustomize refuses absolute paths, and components from outside that are no folder.
    up = "../" * len(folder.parts[1:])
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{up}{str(PRODUCTION)[1:]}"],
        "components": [f"{up}{str(FOLDER / each)[1:]}" for each in components],
        "patches": patches,
        "replacements": list(replacements),
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    return rendered(folder)


@needs_kubectl
def test_networks_are_named_as_documented(tmp_path: Path) -> None:
    part = KUBERNETES.partition("## Networks of your own\n")[2].partition("\n## ")[0]
    patches, replacements = map(yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```", part, re.DOTALL | re.M))
    made = overlay(tmp_path, **patches, **replacements)
    ways = {
        name(each): each["spec"]["egress"]
        for each in made
        if name(each).startswith("fiatgate-") and each["kind"] == "NetworkPolicy" and "egress" in each["spec"]
    }
    (database,), (internet,), (mail,) = (
        ways[f"fiatgate-{each}"] for each in ("postgresql", "internet", "mail")
    )
    assert database["to"] == [{"ipBlock": {"cidr": "10.20.30.0/24"}}]
    assert mail["to"] == internet["to"]
    assert [each["port"] for each in mail["ports"]] == [465, 587]


@needs_kubectl
def test_a_restore_takes_the_backup_and_never_writes_into_its_folder(tmp_path: Path) -> None:
    folder, source_and_time = documented_patches()
    (cluster,) = [
        each
        for each in overlay(tmp_path, [*folder, *source_and_time], "restore")
        if each["kind"] == "Cluster"
    ]
    assert wrong_with(cluster) == []
    spec = cluster["spec"]
    assert spec["bootstrap"] == {
        "recovery": {"source": "backup", "recoveryTarget": {"targetTime": "2026-11-23T05:00:00Z"}}
    }
    (source,) = spec["externalClusters"]
    before, after = source["plugin"]["parameters"], spec["plugins"][0]["parameters"]
    assert source["name"] == "backup"
    assert before == CLUSTER_SPEC["plugins"][0]["parameters"], "where the cluster has written until now"
    assert after["barmanObjectName"] == before["barmanObjectName"]
    assert after["serverName"] != before["serverName"]
    same = {
        key: value for key, value in spec.items() if key not in ("bootstrap", "externalClusters", "plugins")
    }
    assert same == {key: value for key, value in CLUSTER_SPEC.items() if key not in ("bootstrap", "plugins")}
    (left,) = [each for each in overlay(tmp_path, folder) if each["kind"] == "Cluster"]
    assert left["spec"]["plugins"] == spec["plugins"], "the same folder when the component is left out"


# -- roles and databases


def test_each_service_has_its_database_and_two_roles() -> None:
    assert set(ROLES) == {role for each in SERVICES for role in (each, owner_of(each))}
    databases = {each["spec"]["name"]: each["spec"] for each in OBJECTS if each["kind"] == "Database"}
    assert {each: spec["owner"] for each, spec in databases.items()} == {
        each: owner_of(each) for each in SERVICES
    }
    for spec in databases.values():
        assert spec["cluster"] == {"name": name(CLUSTER)}
        assert spec["databaseReclaimPolicy"] == "retain"
    allowed = {"name", "login", "connectionLimit", "passwordSecret"}
    assert {key for role in ROLES.values() for key in role} == allowed, (
        "no superuser, no role that makes others"
    )


def test_each_role_has_enough_connections_and_some_stay_for_people() -> None:
    documented = KUBERNETES.partition("| service | connections at most |")[2].partition("\n\n")[0]
    for service in SERVICES:
        (most,) = re.findall(rf"\| {service} \| (\d+) \|", documented)
        assert ROLES[service]["connectionLimit"] >= int(most), (
            "docs/operations/kubernetes.md: what all its pods open"
        )
        assert ROLES[owner_of(service)]["connectionLimit"] == CONNECTIONS_OF_AN_OWNER
    limits = sum(role["connectionLimit"] for role in ROLES.values())
    assert limits < int(CLUSTER_SPEC["postgresql"]["parameters"]["max_connections"]) - 10


def test_each_role_reaches_its_own_database_over_tls_and_no_other() -> None:
    rules = [rule.split() for rule in CLUSTER_SPEC["postgresql"]["pg_hba"]]
    assert rules[-1] == ["host", "all", "all", "all", "reject"], "the operator's last rule would let all in"
    own, *owners = rules[:-1]
    assert (own[:2], set(own[2].split(",")), own[3:]) == (
        ["hostssl", "sameuser"],
        set(SERVICES),
        ["all", "scram-sha-256"],
    )
    assert sorted(owners) == sorted(
        ["hostssl", each, owner_of(each), "all", "scram-sha-256"] for each in SERVICES
    )


def test_every_role_has_a_password_in_the_example_of_the_secrets() -> None:
    secrets = {name(each): each for each in documents(FOLDER / "secret.example.yaml")}
    for role, spec in ROLES.items():
        secret = secrets.pop(spec["passwordSecret"]["name"])
        assert secret["type"] == "kubernetes.io/basic-auth"
        assert secret["stringData"]["username"] == role
        assert secret["metadata"]["labels"] == {"cnpg.io/reload": "true"}
    ((left, secret),) = secrets.items()
    (store,) = [each for each in OBJECTS if each["kind"] == "ObjectStore"]
    credentials = store["spec"]["configuration"]["s3Credentials"]
    assert {(left, key) for key in secret["stringData"]} == {
        (each["name"], each["key"]) for each in credentials.values()
    }


# -- connections


@needs_kubectl
def test_every_pod_with_a_database_has_the_ca_and_not_its_key() -> None:
    for workload in [each for each in rendered(PRODUCTION) if each["kind"] in ("Deployment", "Job")]:
        mounts = {each["name"]: each for each in container(workload).get("volumeMounts", ())}
        volumes = {each["name"]: each for each in pod(workload).get("volumes", ())}
        if process(workload) not in SERVICES:
            assert "postgres-ca" not in volumes
            continue
        folder, _, file = CA_FILE.rpartition("/")
        assert mounts["postgres-ca"] == {"name": "postgres-ca", "mountPath": folder, "readOnly": True}
        assert volumes["postgres-ca"]["secret"] == {
            "secretName": f"{name(CLUSTER)}-ca",
            "items": [{"key": "ca.crt", "path": file}],
        }
        if component(workload) != "migrate":
            assert {"tls", "postgres-ca"} <= mounts.keys(), "mtls replaces the list: it must come before"


def test_the_documented_address_checks_the_servers_name() -> None:
    (address,) = set(re.findall(r"@(postgres-rw\S+?sslrootcert=[^\s\"`]+)", KUBERNETES))
    host, _, options = address.partition("?")
    assert host.startswith(f"{name(CLUSTER)}-rw:{POSTGRESQL}/")
    assert options == f"sslmode=verify-full&sslrootcert={CA_FILE}"


def test_without_the_component_the_base_asks_for_addresses_only() -> None:
    assert "postgres-ca" not in "".join(path.read_text() for path in BASE.glob("*.yaml"))


# -- who reaches it


def policies() -> list[Manifest]:
    return [each["spec"] for each in OBJECTS if each["kind"] == "NetworkPolicy"]


def rules_of(way: str, port: int) -> list[Manifest]:
    found = [each for each in policies() if way.capitalize() in each["policyTypes"]]
    assert [each["podSelector"] for each in found] == [{"matchLabels": PEERS}]
    return [rule for each in found for rule in each[way] if port in {one["port"] for one in rule["ports"]}]


def test_only_services_instances_and_the_operator_reach_postgresql() -> None:
    peers = [peer for rule in rules_of("ingress", POSTGRESQL) for peer in rule["from"]]
    ours = [peer["podSelector"] for peer in peers if "namespaceSelector" not in peer]
    for workload in WORKLOADS:
        reached = any(selects(each, labels_of(workload)) for each in ours)
        assert reached == has_database(workload), name(workload)
    (operator,) = [peer for peer in peers if "namespaceSelector" in peer]
    assert operator.keys() == {"namespaceSelector", "podSelector"}
    assert any(selects(each, PEERS) for each in ours)


def test_metrics_and_the_instances_state_are_not_for_services() -> None:
    for port in (STATUS, METRICS):
        for peer in [peer for rule in rules_of("ingress", port) for peer in rule["from"]]:
            selector = peer.get("podSelector")
            foreign = "namespaceSelector" in peer
            assert foreign or not any(selects(selector, labels_of(each)) for each in WORKLOADS)


def test_an_instance_calls_the_others_names_the_api_and_the_storage_alone() -> None:
    assert [rule["to"] for rule in rules_of("egress", POSTGRESQL)] == [
        [{"podSelector": {"matchLabels": PEERS}}]
    ]
    named = [rule for each in policies() for rule in each.get("egress", ()) if UNNAMED in rule["to"]]
    assert [{each["port"] for each in rule["ports"]} for rule in named] == [{443, 6443}, {443}]


# -- metrics


@pytest.mark.parametrize("alert", postgres_alerts())
def test_an_alert_reads_metrics_that_the_operator_has_of_this_cluster(alert: str) -> None:
    (monitor,) = [each["spec"] for each in OBJECTS if each["kind"] == "PodMonitor"]
    assert monitor["podTargetLabels"] == ["cnpg.io/cluster"], (
        "so the label of the pod is a label of its series"
    )
    read = selectors(postgres_alerts()[alert]["expr"])
    assert read
    for selector in read:
        assert selector.name in KNOWN_METRICS
        labels = {each.name: each.value for each in selector.matchers.matchers}
        assert (
            labels["cnpg_io_cluster"]
            == monitor["selector"]["matchLabels"]["cnpg.io/cluster"]
            == name(CLUSTER)
        )


def test_no_alert_of_postgresql_is_one_of_every_installation() -> None:
    """Where PostgreSQL is another one they would alert for ever."""
    assert all(
        isinstance(promql_parser.parse(each["expr"]), promql_parser.Expr)
        for each in postgres_alerts().values()
    )
    assert "cnpg_" not in (ROOT / "deploy" / "observability" / "alerts.yaml").read_text()
