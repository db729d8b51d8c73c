"""That a node, a zone or a busy hour takes no part of Fiatgate away: replicas, scaling, budgets, spreading."""

import re
from typing import Any, Final

import pytest

from tests.k8s.manifests import (
    DEPLOYMENTS,
    ROOT,
    SERVICES,
    Manifest,
    connections_of,
    container,
    name,
    of_kind,
    on_deployments,
    pod,
    process,
    settings_class,
)

KUBERNETES: Final = (ROOT / "docs" / "operations" / "kubernetes.md").read_text()
# The longest that clusters' name servers keep an answer (kubeadm's Corefile, kube-dns, caches on nodes). A caller asks
# again when a pod hangs up, and may get an answer of that age.
NAMES_KEPT_SECONDS: Final = 30
# Until every node sends new connections elsewhere.
ENDPOINTS_SECONDS: Final = 5
SCALERS: Final = {name(each): each["spec"] for each in of_kind("HorizontalPodAutoscaler")}


def selected(deployment: Manifest) -> dict[str, Any]:
    return dict(deployment["spec"]["selector"])


def selects(service: Manifest, deployment: Manifest) -> bool:
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    return bool(service["spec"]["selector"].items() <= labels.items())


def has_callers(deployment: Manifest) -> bool:
    return any(selects(each, deployment) for each in of_kind("Service"))


def most_pods(deployment: Manifest) -> int:
    """While it rolls: one more; twice as many where those that leave serve on longer than new ones take to start."""
    surge = int(deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"])
    scaler = SCALERS.get(name(deployment))
    most = int(scaler["maxReplicas"] if scaler else deployment["spec"]["replicas"])
    return 2 * most if has_callers(deployment) else surge + most


@on_deployments
def test_one_pod_less_is_never_none(deployment: Manifest) -> None:
    scaler = SCALERS.get(name(deployment))
    assert (scaler["minReplicas"] if scaler else deployment["spec"]["replicas"]) >= 2


@on_deployments
def test_the_number_of_pods_has_one_owner(deployment: Manifest) -> None:
    """A number in the Deployment would undo the autoscaler's at every apply."""
    assert ("replicas" in deployment["spec"]) != (name(deployment) in SCALERS)


@pytest.mark.parametrize("deployment", [each for each in DEPLOYMENTS if has_callers(each)], ids=name)
def test_whatever_is_called_is_scaled(deployment: Manifest) -> None:
    assert name(deployment) in SCALERS


@pytest.mark.parametrize("target", SCALERS)
def test_an_autoscaler_scales_a_deployment_by_a_load_that_its_pods_can_reach(target: str) -> None:
    """As many cores as a pod has processes can be used at most, whatever its limit is: the GIL."""
    (deployment,) = [each for each in DEPLOYMENTS if name(each) == target]
    scaler = SCALERS[target]
    assert scaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    (metric,) = scaler["metrics"]
    fields = settings_class(deployment).model_fields
    processes = fields["workers"].default if "workers" in fields else 1
    average = int(metric["resource"]["target"]["averageValue"].removesuffix("m"))
    assert 500 * processes <= average <= 800 * processes
    assert average < 1000 * int(container(deployment)["resources"]["limits"]["cpu"])


@pytest.mark.parametrize("service", SERVICES)
def test_the_documentation_says_how_many_connections_the_most_pods_open(service: str) -> None:
    most = sum(
        most_pods(each) * connections_of(each, answers_calls=has_callers(each))
        for each in DEPLOYMENTS
        if process(each) == service
    )
    documented = re.findall(rf"^\| {service} \| (\d+) \|$", KUBERNETES, re.MULTILINE)
    assert documented == [str(most)]


@on_deployments
def test_a_drained_node_takes_one_pod_at_a_time_and_is_never_held_up(deployment: Manifest) -> None:
    (budget,) = [each for each in of_kind("PodDisruptionBudget") if name(each) == name(deployment)]
    assert budget["spec"] == {"maxUnavailable": 1, "selector": selected(deployment)}


def test_no_budget_and_no_autoscaler_is_for_nobody() -> None:
    known = {name(each) for each in DEPLOYMENTS}
    assert {name(each) for each in of_kind("PodDisruptionBudget")} == known
    assert SCALERS.keys() <= known


@on_deployments
def test_pods_are_spread_over_zones_and_nodes_but_start_on_a_single_one(deployment: Manifest) -> None:
    assert pod(deployment)["topologySpreadConstraints"] == [
        {
            "topologyKey": key,
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selected(deployment),
        }
        for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
    ]


@on_deployments
def test_a_pod_that_is_called_waits_until_callers_know_that_it_leaves(deployment: Manifest) -> None:
    """tests/rolling takes the wait from here, and counts what is asked twice for it."""
    before_stop = container(deployment).get("lifecycle", {}).get("preStop")
    if not has_callers(deployment):
        assert before_stop is None, "nobody calls it: it would only leave later"
        return
    (service,) = [each for each in of_kind("Service") if selects(each, deployment)]
    is_found_by_name = service["spec"].get("clusterIP") == "None"
    least_seconds = NAMES_KEPT_SECONDS + ENDPOINTS_SECONDS if is_found_by_name else ENDPOINTS_SECONDS
    assert int(before_stop["exec"]["command"][1]) >= least_seconds
