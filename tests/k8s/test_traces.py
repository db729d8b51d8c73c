"""Traces on Kubernetes: the component says where the collector is, to processes that may reach it."""

import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import kubernetes_validate
import yaml

from kit.base.config.processes import Settings
from kit.base.config.variables import variables_of
from tests.k8s.manifests import BASE, DEPLOYMENTS, K8S, needs_kubectl, rendered
from tests.k8s.test_network_policies import labels_of, selects

FOLDER: Final = K8S / "components" / "traces"
KUSTOMIZATION: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
POLICY: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "collector.yaml").read_text())


def settings() -> dict[str, str]:
    (of_all,) = KUSTOMIZATION["configMapGenerator"]
    return dict(each.split("=", 1) for each in of_all["literals"])


def test_its_settings_are_those_that_every_process_reads() -> None:
    fields = {
        variable: field for field in Settings.model_fields for variable in variables_of(Settings, field)
    }
    read = Settings.model_validate({fields[variable]: value for variable, value in settings().items()})
    assert read.traces_endpoint == settings()["FIATGATE_TRACES_ENDPOINT"]
    assert 0 < read.traces_ratio <= 1


def test_every_process_may_reach_the_collector_and_nothing_else_by_this() -> None:
    (rule,) = POLICY["spec"]["egress"]
    address = urlsplit(settings()["FIATGATE_TRACES_ENDPOINT"])
    assert [each["port"] for each in rule["ports"]] == [address.port]
    (to,) = rule["to"]
    assert to["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": str(address.hostname).rpartition(".")[2]
    }
    assert all(selects(POLICY["spec"]["podSelector"], labels_of(each)) for each in DEPLOYMENTS)


@needs_kubectl
def test_with_the_component_the_processes_get_its_settings(tmp_path: Path) -> None:
    def relative(folder: Path) -> str:
        return os.path.relpath(folder, tmp_path)

    overlay = {"resources": [relative(BASE)], "components": [relative(FOLDER)]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    made = rendered(tmp_path)
    (shared,) = [
        each
        for each in made
        if each["kind"] == "ConfigMap" and each["metadata"]["name"].startswith("fiatgate-settings")
    ]
    assert shared["data"].items() >= settings().items()
    policies = [each for each in made if each["kind"] == "NetworkPolicy"]
    assert [each["metadata"]["name"] for each in policies] == ["fiatgate-traces"]
    kubernetes_validate.validate(policies[0], "1.34", strict=True)
