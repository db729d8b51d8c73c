"""The manifests of deploy/k8s, read and rendered: what its tests have in common."""

import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kit.base.config.processes import CallerSettings, DatabaseSettings, ServiceSettings, Settings
from kit.base.config.variables import variables_of
from tests.support.contracts import permissions_of
from tools.docs import settings_classes

ROOT: Final = Path(__file__).resolve().parents[2]
K8S: Final = ROOT / "deploy" / "k8s"
BASE: Final = K8S / "base"
VERSION: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
CLASSES: Final = {settings.service: settings for settings in settings_classes().values()}
SERVICES: Final = tuple(each for each, settings in CLASSES.items() if issubclass(settings, ServiceSettings))
HTTP_PROCESSES: Final = tuple(each for each in CLASSES if each not in SERVICES)

Manifest = dict[str, Any]


@cache
def kustomization() -> Manifest:
    return dict(yaml.safe_load((BASE / "kustomization.yaml").read_text()))


@cache
def manifests() -> list[Manifest]:
    return [
        document
        for file in kustomization()["resources"]
        for document in yaml.safe_load_all((BASE / file).read_text())
    ]


def of_kind(*kinds: str) -> list[Manifest]:
    return [each for each in manifests() if each["kind"] in kinds]


def name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def pod(manifest: Manifest) -> Manifest:
    return dict(manifest["spec"]["template"]["spec"])


def container(manifest: Manifest) -> Manifest:
    (only,) = pod(manifest)["containers"]
    return dict(only)


def process(manifest: Manifest) -> str:
    """The process in it, whose settings class its container reads: invoices, console-desk."""
    return str(manifest["metadata"]["labels"]["app.kubernetes.io/name"])


def component(manifest: Manifest) -> str:
    """serve, work, migrate, setup; empty for a Service."""
    return str(manifest["metadata"].get("labels", {}).get("app.kubernetes.io/component", ""))


def shared_settings() -> dict[str, str]:
    lines = (BASE / "settings.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def settings_class(manifest: Manifest) -> type[Settings]:
    of = process(manifest)
    return DatabaseSettings.of(of) if manifest["kind"] == "Job" else CLASSES[of]


def connections_of(manifest: Manifest, *, answers_calls: bool) -> int:
    """Database connections that one pod opens at most: those of its pool; and where hot statements run alone, one
    more of each thread that answers calls.
    """
    settings = settings_class(manifest)
    assert issubclass(settings, ServiceSettings)
    pool, threads = (int(settings.model_fields[field].default) for field in ("pool_size", "threads"))
    if not answers_calls:
        return pool
    sources = (ROOT / "services" / process(manifest)).rglob("*.py")
    prepares = any("db.one_or_none(" in source.read_text() for source in sources)
    return pool + settings.slot_connections + prepares * (threads + settings.slot_connections)


def known_variables(settings: type[CallerSettings]) -> set[str]:
    return {variable for field in settings.model_fields for variable in variables_of(settings, field)}


def secret_variables(settings: type[Settings]) -> set[str]:
    """Those whose value must not stand in a manifest: what settings keep out of their own repr."""
    hidden = [field for field, info in settings.model_fields.items() if info.repr is False]
    return {variable for field in hidden for variable in variables_of(settings, field)}


def callers_of(service: str) -> set[str]:
    """The processes that may call it; tests/test_architecture.py holds that equal to what they call."""
    return {caller for row in permissions_of(service).values() for caller in row.callers}


@cache
def rendered(folder: Path) -> list[Manifest]:
    result = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return [each for each in yaml.safe_load_all(result.stdout) if each]


# The operator's pod sleeps until it is used: the rules of processes that run are not for it.
WORKLOADS: Final = [each for each in of_kind("Deployment", "Job") if process(each) != "cli"]
DEPLOYMENTS: Final = [each for each in WORKLOADS if each["kind"] == "Deployment"]
on_workloads: Final = pytest.mark.parametrize("workload", WORKLOADS, ids=name)
on_deployments: Final = pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=name)
needs_kubectl: Final = pytest.mark.skipif(
    shutil.which("kubectl") is None,
    reason="only the files were checked; to render them get kubectl: https://kubernetes.io/docs/tasks/tools/#kubectl",
)
