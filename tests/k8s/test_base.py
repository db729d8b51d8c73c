"""The manifests of deploy/k8s/base: what a cluster would only say at night.

Everything is read from the files themselves; where kubectl is on the machine, they are rendered as well.
"""

import re
import shutil
import subprocess
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from gateway.walls.uploads import PICTURE_BODY_MAX_BYTES, PICTURE_BODY_SECONDS
from kit.base.config.processes import CliSettings
from kit.rpc.client import DEADLINE_SECONDS
from kit.rpc.limits import OUTWARD_CALL_SECONDS
from kit.rpc.server import ALIVE
from kit.web.bodies import BODY_SECONDS
from kit.web.config import WebSettings
from kit.web.exchange import REQUEST_SECONDS
from kit.web.live import PING_SECONDS, STREAMS_PER_NETWORK
from kit.web.server import GRACEFUL_SECONDS
from services.webhooks.config import CALL_MARGIN_SECONDS
from services.webhooks.delivery.engine import END_SECONDS, RECORD_GATHER_SECONDS
from tests.console.routes import places_of
from tests.k8s.manifests import (
    BASE,
    CLASSES,
    DEPLOYMENTS,
    ROOT,
    SERVICES,
    VERSION,
    WORKLOADS,
    Manifest,
    component,
    container,
    known_variables,
    kustomization,
    manifests,
    name,
    needs_kubectl,
    of_kind,
    on_deployments,
    on_workloads,
    pod,
    process,
    secret_variables,
    settings_class,
    shared_settings,
)
from tests.support.signing import PUBLIC_KEYS, SEAL_KEY, SIGNING_KEY
from tools.manifests import manifests as generated

CONSOLE: Final = ("console-desk", "console-dashboard")
"""They keep nothing, and use no NATS: they have no secret."""
# For connections to be closed and the last spans to be sent, once everything has ended.
CLOSING_SECONDS = 5


def test_every_file_is_part_of_the_kustomization() -> None:
    apart = {"kustomization.yaml", "secret.example.yaml"}
    assert {path.name for path in BASE.glob("*.yaml")} - apart == set(kustomization()["resources"])


def test_manifests_are_made_from_their_templates() -> None:
    changed = {path.name for path, text in generated().items() if path.read_text() != text}
    assert not changed, "edited by hand, or to be made anew by `make docs`"


def test_every_process_is_there() -> None:
    commands = {tuple(container(each)["command"]) for each in WORKLOADS}
    expected = {
        ("python", "-m", f"services.{service}", mode)
        for service in SERVICES
        for mode in ("serve", "work", "migrate")
    }
    http = {
        ("python", "-m", "gateway", "run"),
        ("python", "-m", "console", "desk"),
        ("python", "-m", "console", "dashboard"),
    }
    assert commands == expected | http


# -- settings


@on_workloads
def test_every_variable_is_a_setting(workload: Manifest) -> None:
    names = {variable["name"] for variable in container(workload)["env"]}
    assert names <= known_variables(settings_class(workload)), (
        "nobody reads it: a typing error, or it was renamed"
    )


def test_the_operators_pod_finds_every_process_where_its_service_is() -> None:
    (cli,) = [each for each in of_kind("Deployment") if process(each) == "cli"]
    own = {each["name"]: each["value"] for each in container(cli)["env"]}
    assert own.keys() <= known_variables(CliSettings)
    assert container(cli)["envFrom"] == [{"configMapRef": {"name": "fiatgate-settings"}}]
    found = {key: value for key, value in (shared_settings() | own).items() if "_INTERNAL_" in key}
    assert found == {
        "FIATGATE_INTERNAL_GATEWAY_URL": "http://gateway",
        "FIATGATE_INTERNAL_DESK_URL": "http://console-desk",
        "FIATGATE_INTERNAL_DASHBOARD_URL": "http://console-dashboard",
    }
    assert {name(each) for each in of_kind("Service")} >= {
        url.removeprefix("http://") for url in found.values()
    }


def test_every_shared_variable_is_a_setting_of_somebody() -> None:
    known = set().union(*(known_variables(each) for each in CLASSES.values()))
    assert shared_settings().keys() <= known


@on_workloads
def test_secrets_come_from_secrets(workload: Manifest) -> None:
    secret = secret_variables(settings_class(workload))
    assert not secret & shared_settings().keys(), "a ConfigMap is for everybody to read"
    for variable in container(workload)["env"]:
        assert ("valueFrom" in variable) == (variable["name"] in secret), variable["name"]


def secret_references() -> Iterator[tuple[str, str]]:
    for workload in WORKLOADS:
        for variable in container(workload)["env"]:
            if "valueFrom" in variable:
                reference = variable["valueFrom"]["secretKeyRef"]
                yield reference["name"], reference["key"]


def test_the_example_has_every_secret_that_is_referred_to() -> None:
    documents = yaml.safe_load_all((BASE / "secret.example.yaml").read_text())
    example = {(name(each), key) for each in documents for key in each["stringData"]}
    assert example == set(secret_references())


@on_workloads
def test_a_service_sees_no_secret_of_another(workload: Manifest) -> None:
    own = set() if process(workload) in CONSOLE else {f"fiatgate-{process(workload)}"}
    if workload["kind"] == "Job":  # what serves has no right to change its tables
        own.add(f"fiatgate-migration-{process(workload)}")
        keys = {each["valueFrom"]["secretKeyRef"]["key"] for each in container(workload)["env"]}
        assert keys == {"database-url", "migration-database-url"}
    assert {
        variable["valueFrom"]["secretKeyRef"]["name"]
        for variable in container(workload)["env"]
        if "valueFrom" in variable
    } == own


@on_workloads
def test_it_would_start_with_these_settings(workload: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    given: Mapping[str, str] = {
        "database-url": "postgresql://role:secret@postgres:5432/database",
        "migration-database-url": "postgresql://role_owner:secret@postgres:5432/database",
        "master-keys": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
        "accounts-master-keys": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
        "smtp-url": "smtps://fiatgate:secret@mail.example:465",
        "nats-url": "nats://process:secret@nats:4222",
        "fact-signing-key": SIGNING_KEY,
        "seal-keys": SEAL_KEY,
        "fact-public-keys": ",".join(PUBLIC_KEYS),
    }
    for variable, value in shared_settings().items():
        monkeypatch.setenv(variable, value)
    for variable in container(workload)["env"]:
        monkeypatch.setenv(
            variable["name"], variable.get("value") or given[variable["valueFrom"]["secretKeyRef"]["key"]]
        )
    settings = settings_class(workload)()
    if workload["kind"] == "Job":
        return
    port = container(workload).get("ports", [{"containerPort": 50051}])[0]["containerPort"]
    bind = settings.bind  # type: ignore[attr-defined]  # every process that listens has it
    assert bind == f"0.0.0.0:{port}", "loopback inside a pod is reached by nobody"


@on_deployments
def test_every_process_of_a_pod_shows_its_metrics_on_a_named_port(deployment: Manifest) -> None:
    host, _, first = shared_settings()["FIATGATE_METRICS_BIND"].rpartition(":")
    fields = settings_class(deployment).model_fields
    processes = fields["workers"].default if "workers" in fields else 1
    named = [
        port["containerPort"] for port in container(deployment)["ports"] if port["name"].startswith("metrics")
    ]
    assert host == "0.0.0.0"
    assert named == list(range(int(first), int(first) + processes))


INGRESSES: Final = {name(each): each for each in of_kind("Ingress")}


@pytest.mark.parametrize(
    ("ingress", "setting"), [("gateway", "PUBLIC_URL"), ("console-dashboard", "DASHBOARD_URL")]
)
def test_browsers_are_sent_to_the_ingress(ingress: str, setting: str) -> None:
    spec = INGRESSES[ingress]["spec"]
    host = spec["rules"][0]["host"]
    assert shared_settings()[f"FIATGATE_{setting}"] == f"https://{host}"
    assert spec["tls"][0]["hosts"] == [host]


def test_each_ingress_has_a_host_and_a_certificate_of_its_own() -> None:
    """A cookie of the console belongs to its whole host."""
    assert set(INGRESSES) == {"gateway", "console-dashboard"}
    assert len({each["spec"]["rules"][0]["host"] for each in INGRESSES.values()}) == len(INGRESSES)
    assert len({each["spec"]["tls"][0]["secretName"] for each in INGRESSES.values()}) == len(INGRESSES)


def leads(ingress: Manifest, path: str) -> bool:
    """Whether requests for that path reach the process; a prefix is one of whole segments, as Kubernetes has it."""
    paths = ingress["spec"]["rules"][0]["http"]["paths"]
    assert {each["backend"]["service"]["name"] for each in paths} == {name(ingress)}
    return any(
        path == each["path"] or (each["pathType"] == "Prefix" and f"{path}/".startswith(f"{each['path']}/"))
        for each in paths
    )


def gateway_routes() -> set[str]:
    code = "".join(path.read_text() for path in (ROOT / "gateway").rglob("*.py"))
    return set(re.findall(r'add_route\(\s*f?"([^"]+)"', code))


def dashboard_routes() -> set[str]:
    return {path for path, _resource, _methods in places_of("dashboard")}


@pytest.mark.parametrize(
    ("ingress", "routes"),
    [("gateway", gateway_routes), ("console-dashboard", dashboard_routes)],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_the_ingress_leads_to_all_but_the_probes(ingress: str, routes: Callable[[], set[str]]) -> None:
    assert {each for each in routes() if not leads(INGRESSES[ingress], each)} == {"/healthz", "/readyz"}
    assert not leads(INGRESSES[ingress], "/metrics")


def test_the_ingress_lets_a_picture_pass() -> None:
    most = INGRESSES["gateway"]["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"]
    assert PICTURE_BODY_MAX_BYTES <= int(most.removesuffix("m")) * 2**20 < 2 * PICTURE_BODY_MAX_BYTES


@pytest.mark.parametrize("ingress", INGRESSES)
def test_the_ingress_bounds_what_the_gateway_leaves_to_its_proxy(ingress: str) -> None:
    """Slow senders and readers, and the connections of one client: docs/security.md."""
    prefix = "nginx.ingress.kubernetes.io/"
    given = {
        each.removeprefix(prefix): value
        for each, value in INGRESSES[ingress]["metadata"]["annotations"].items()
    }
    assert (given["proxy-request-buffering"], given["proxy-buffering"]) == ("on", "on")
    assert int(given["limit-connections"]) > STREAMS_PER_NETWORK
    assert (
        PING_SECONDS
        < int(given["proxy-read-timeout"])
        < WebSettings.model_fields["keepalive_seconds"].default
    )
    assert int(given["proxy-send-timeout"]) < WebSettings.model_fields["keepalive_seconds"].default


def test_no_network_is_trusted_that_an_overlay_does_not_name() -> None:
    assert "FIATGATE_TRUSTED_PROXIES" not in shared_settings()


# -- addresses


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_found_where_its_address_says(service: str) -> None:
    (manifest,) = [each for each in of_kind("Service") if name(each) == service]
    assert manifest["spec"]["clusterIP"] == "None", "behind one virtual address gRPC stays with a single pod"
    (port,) = manifest["spec"]["ports"]
    assert shared_settings()[f"FIATGATE_{service.upper()}_ADDRESS"] == f"{service}:{port['port']}"


@pytest.mark.parametrize("service", of_kind("Service"), ids=name)
def test_a_service_leads_to_pods_that_serve(service: Manifest) -> None:
    selector = service["spec"]["selector"]
    behind = [
        each
        for each in DEPLOYMENTS
        if selector.items() <= each["spec"]["template"]["metadata"]["labels"].items()
    ]
    assert len(behind) == 1, "the pods that only work must get no calls"
    assert component(behind[0]) == "serve"
    assert service["spec"]["ports"][0]["targetPort"] in {
        port["name"] for port in container(behind[0])["ports"]
    }


@on_deployments
def test_a_deployment_selects_its_own_pods_only(deployment: Manifest) -> None:
    selector = deployment["spec"]["selector"]["matchLabels"]
    assert selector == deployment["spec"]["template"]["metadata"]["labels"]
    assert [each for each in DEPLOYMENTS if each["spec"]["selector"]["matchLabels"] == selector] == [
        deployment
    ]


# -- life and death


@on_deployments
def test_probes_ask_the_port_that_listens(deployment: Manifest) -> None:
    main = container(deployment)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = main[probe].get("grpc") or main[probe]["httpGet"]
        assert asked["port"] in {port[key] for port in main["ports"] for key in ("name", "containerPort")}


@pytest.mark.parametrize("deployment", [each for each in DEPLOYMENTS if process(each) in SERVICES], ids=name)
def test_a_loop_in_trouble_neither_kills_a_pod_nor_takes_its_calls_away(deployment: Manifest) -> None:
    """Health without a name follows the loops, `alive` does not: restarting cures no outage, and calls go on.

    Where no calls hang on it, readiness tells of the loops: a pod that waits for NATS is seen.
    """
    main = container(deployment)
    asked = {probe: main[probe]["grpc"].get("service", "") for probe in main if probe.endswith("Probe")}
    readiness = ALIVE if component(deployment) == "serve" else ""
    assert asked == {"startupProbe": ALIVE, "livenessProbe": ALIVE, "readinessProbe": readiness}


@on_deployments
def test_a_pod_may_start_as_long_as_its_process_waits_for_the_database(deployment: Manifest) -> None:
    probe = container(deployment)["startupProbe"]
    waits = CLASSES["invoices"].model_fields["start_seconds"].default
    assert probe["periodSeconds"] * probe["failureThreshold"] > waits


def finishes_seconds(deployment: Manifest) -> float:
    """How long a process that is told to stop lets what is under way go on; services: calls and loops alike."""
    fields = settings_class(deployment).model_fields
    return float(fields["stop_seconds"].default if "stop_seconds" in fields else GRACEFUL_SECONDS)


def longest_seconds(deployment: Manifest) -> float:
    """What may be under way in it takes at most so long."""
    if process(deployment) == "gateway":
        return max(
            OUTWARD_CALL_SECONDS, BODY_SECONDS + REQUEST_SECONDS, PICTURE_BODY_SECONDS + REQUEST_SECONDS
        )
    if process(deployment) != "webhooks":
        return DEADLINE_SECONDS
    return CALL_MARGIN_SECONDS + float(CLASSES["webhooks"].model_fields["webhook_timeout_seconds"].default)


@on_deployments
def test_whatever_is_under_way_at_the_stop_may_end(deployment: Manifest) -> None:
    assert longest_seconds(deployment) <= finishes_seconds(deployment)


def test_an_attempt_under_way_at_the_stop_is_waited_for_and_written_down() -> None:
    """Cut off, it would be made again: the receiver would see it twice at every rollout."""
    fields = CLASSES["webhooks"].model_fields
    waits = fields["stop_seconds"].default - END_SECONDS
    assert waits > fields["webhook_timeout_seconds"].default + RECORD_GATHER_SECONDS


@on_deployments
def test_a_pod_is_not_killed_before_it_had_time_to_finish(deployment: Manifest) -> None:
    before_stop = container(deployment).get("lifecycle", {}).get("preStop")
    waits = int(before_stop["exec"]["command"][1]) if before_stop else 0
    longest = waits + finishes_seconds(deployment) + CLOSING_SECONDS
    assert pod(deployment)["terminationGracePeriodSeconds"] > longest


@on_deployments
def test_a_rollout_takes_no_pod_away_before_the_next_is_ready(deployment: Manifest) -> None:
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


@pytest.mark.parametrize("job", of_kind("Job"), ids=name)
def test_a_change_of_settings_leaves_a_migration_as_it_is(job: Manifest) -> None:
    """The name of the settings' ConfigMap changes with its content, and a Job can't be changed."""
    assert "envFrom" not in container(job)
    assert "volumes" not in pod(job)


@pytest.mark.parametrize("job", of_kind("Job"), ids=name)
def test_a_migration_leaves_room_for_the_next(job: Manifest) -> None:
    assert job["spec"]["ttlSecondsAfterFinished"] > 0, "a Job can't be changed, only be gone"
    assert pod(job)["restartPolicy"] == "OnFailure"


# -- bounds


@on_workloads
def test_it_is_bounded(workload: Manifest) -> None:
    resources = container(workload)["resources"]
    assert resources["requests"].keys() == resources["limits"].keys() == {"cpu", "memory"}


@on_workloads
def test_it_may_do_nothing_that_it_does_not_need(workload: Manifest) -> None:
    assert pod(workload)["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container(workload)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@on_workloads
def test_it_holds_no_token_of_the_cluster(workload: Manifest) -> None:
    account = pod(workload)["serviceAccountName"]
    (manifest,) = [each for each in of_kind("ServiceAccount") if name(each) == account]
    assert manifest["automountServiceAccountToken"] is False
    assert pod(workload)["automountServiceAccountToken"] is False
    assert account == process(workload)


@on_workloads
def test_it_gets_no_variables_of_other_services(workload: Manifest) -> None:
    assert pod(workload)["enableServiceLinks"] is False


# -- the image


def test_the_image_is_pinned_to_this_version() -> None:
    assert {container(each)["image"] for each in WORKLOADS} == {"fiatgate"}
    (image,) = kustomization()["images"]
    assert (image["name"], image["newTag"]) == ("fiatgate", VERSION)


def test_the_image_runs_as_the_account_the_pods_run_as() -> None:
    assert "USER 10001:10001" in (ROOT / "Dockerfile").read_text()


def test_the_base_of_the_image_is_pinned() -> None:
    bases = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", bases[0])
    assert set(bases[1:]) == {"base"}


def test_two_builds_of_the_image_have_the_same_bytes() -> None:
    """Bytecode holds the time of its source, unless it's told not to; whatever else there is comes by its hash."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    installs = [line for line in lines if "pip install" in line]
    (compiles,) = [line for line in lines if "compileall" in line]
    assert len(installs) == 2
    assert all("--no-compile" in line for line in installs)
    assert "--invalidation-mode unchecked-hash" in compiles


def test_the_image_copies_all_that_is_installed() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"][
        "include"
    ]
    assert {each.removesuffix("*") for each in packages} <= {path.partition("/")[0] for path in kept}
    assert {"pyproject.toml", "requirements.lock", "tools/slim.py", "README.md", "LICENSE"} <= kept


# -- as kubectl sees it


@needs_kubectl
def test_it_renders() -> None:
    result = subprocess.run(["kubectl", "kustomize", str(BASE)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    rendered = list(yaml.safe_load_all(result.stdout))
    assert sorted(each["kind"] for each in rendered) == sorted(
        [*(each["kind"] for each in manifests()), "ConfigMap"]
    )
    (settings,) = [each for each in rendered if each["kind"] == "ConfigMap"]
    assert settings["data"] == shared_settings()
    for each in rendered:
        assert each["metadata"]["labels"]["app.kubernetes.io/part-of"] == "fiatgate"
        if each["kind"] in ("Deployment", "Job"):
            assert container(each)["image"] == f"fiatgate:{VERSION}"
        if each["kind"] == "Deployment":
            assert container(each)["envFrom"] == [{"configMapRef": {"name": name(settings)}}]


@needs_kubectl
def test_the_overlay_of_the_documentation_renders(tmp_path: Path) -> None:
    document = (ROOT / "docs" / "operations" / "kubernetes.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", document, re.DOTALL)
    (overlay,) = (each for each in blocks if "path/to/deploy/k8s/base" in each)
    shutil.copytree(BASE, tmp_path / "base")
    text = textwrap.dedent(overlay).replace("path/to/deploy/k8s/base", "base")
    (tmp_path / "kustomization.yaml").write_text(text)
    result = subprocess.run(
        ["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    rendered = list(yaml.safe_load_all(result.stdout))
    assert {each["metadata"]["namespace"] for each in rendered} == {"fiatgate"}
    assert "pay.example.com" not in result.stdout


def test_without_a_builder_the_script_says_what_to_install(tmp_path: Path) -> None:
    for tool in ("dirname", "sed"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "")
    shell = shutil.which("sh")
    assert shell
    result = subprocess.run(
        [shell, ROOT / "tools" / "image.sh"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert "apt-get install buildah" in result.stderr
