"""The overlay `local` in a namespace of its own, with a shop's pod beside it, as text for `kubectl apply`."""

import base64
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.kube import Kubectl, Manifest
from tests.k8s.manifests import K8S
from tests.support.certificates import PROCESSES, Authority

MARK: Final = {"app.kubernetes.io/managed-by": "fiatgate-make-cluster"}
SHOP: Final = "trial-shop"
SHOP_PORT: Final = 9001
SHOP_PROGRAM: Final = Path(__file__).parent / "shop.py"
CERT_MANAGER: Final = "cert-manager.io/"
SETTINGS: Final = (
    "FIATGATE_WEBHOOK_ALLOW_PRIVATE=on",  # the shop's receiver is in the cluster
    "FIATGATE_RATES_MAX_AGE_SECONDS=604800",
    "FIATGATE_RATE_LIMIT_PER_MINUTE=0",  # all customers have one address here
    "FIATGATE_PAGE_REQUESTS_PER_MINUTE=0",
    "FIATGATE_NETWORK_PAGE_REQUESTS_PER_MINUTE=0",
)


class Overlay:
    """image: of Fiatgate, with its tag or digest"""

    def __init__(self, namespace: str, image: str) -> None:
        self.namespace = namespace
        self._image = image

    def rendered(self, *, mtls: bool = False) -> list[Manifest]:
        """All objects. With mTLS, those of cert-manager are among them. Raises Failed."""
        with tempfile.TemporaryDirectory(prefix="fiatgate-cluster-") as name:
            folder = Path(name).resolve()
            whole = self._kustomization(folder, ["mtls"] if mtls else [])
            (folder / "kustomization.yaml").write_text(yaml.safe_dump(whole))
            (folder / "shop.yaml").write_text(yaml.safe_dump_all(self._shop()))
            text = Kubectl(self.namespace)("kustomize", str(folder))
        return [each for each in yaml.safe_load_all(text) if each]

    def _kustomization(self, folder: Path, components: Iterable[str]) -> Manifest:
        def reached(path: Path) -> str:
            return os.path.relpath(path, folder)

        name, tag = _image_parts(self._image)
        marked = [
            {"op": "add", "path": f"/metadata/labels/{key.replace('/', '~1')}", "value": value}
            for key, value in MARK.items()
        ]
        return {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": self.namespace,
            "resources": [reached(K8S / "overlays" / "local"), "shop.yaml"],
            "components": [reached(K8S / "components" / each) for each in components],
            "images": [{"name": "fiatgate", "newName": name, **tag}],
            "configMapGenerator": [
                {
                    "name": "fiatgate-settings",
                    "behavior": "merge",
                    "literals": list(SETTINGS),
                    "options": {"labels": {"app.kubernetes.io/component": "setup"}},
                }
            ],
            "patches": [{"target": {"kind": "Namespace"}, "patch": yaml.safe_dump(marked)}],
        }

    def _shop(self) -> list[Manifest]:
        labels = {"app.kubernetes.io/name": SHOP}
        from_webhooks = {
            "matchLabels": {"app.kubernetes.io/name": "webhooks"},
            "matchExpressions": [
                {"key": "app.kubernetes.io/component", "operator": "In", "values": ["serve", "work"]}
            ],
        }
        return [
            _object("v1", "ConfigMap", data={"shop.py": SHOP_PROGRAM.read_text()}),
            _object(
                "v1",
                "Service",
                spec={"selector": labels, "ports": [{"name": "hook", "port": SHOP_PORT}]},
            ),
            _object("v1", "Pod", labels=labels, spec=_pod_of_shop()),
            _object(
                "networking.k8s.io/v1",
                "NetworkPolicy",
                spec={
                    "podSelector": from_webhooks,
                    "policyTypes": ["Egress"],
                    "egress": [
                        {
                            "to": [{"podSelector": {"matchLabels": labels}}],
                            "ports": [{"protocol": "TCP", "port": SHOP_PORT}],
                        }
                    ],
                },
            ),
            _object(
                "networking.k8s.io/v1",
                "NetworkPolicy",
                name=f"{SHOP}-visits",
                spec={
                    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "gateway"}},
                    "policyTypes": ["Ingress"],
                    "ingress": [
                        {
                            "from": [{"podSelector": {"matchLabels": labels}}],
                            "ports": [{"protocol": "TCP", "port": 8080}],
                        }
                    ],
                },
            ),
        ]


def certificates() -> list[Manifest]:
    """Secrets as cert-manager would make them, of a CA that is made here: for clusters without it."""
    authority = Authority()
    secrets = []
    with tempfile.TemporaryDirectory(prefix="fiatgate-cluster-") as folder:
        for process in PROCESSES:
            files = authority.issue(Path(folder) / process, process)
            content = {path.name: path.read_bytes() for path in (files.ca, files.certificate, files.key)}
            data = {name: base64.b64encode(each).decode() for name, each in content.items()}
            secrets.append(_object("v1", "Secret", name=f"fiatgate-{process}-tls", type="Opaque", data=data))
    return secrets


def is_of_cert_manager(manifest: Manifest) -> bool:
    return str(manifest["apiVersion"]).startswith(CERT_MANAGER)


def beyond_the_namespace(manifests: Iterable[Manifest]) -> list[str]:
    """Objects that the deletion of the namespace would leave: there must be none."""
    return [
        f"{each['kind']} {each['metadata']['name']}"
        for each in manifests
        if each["kind"] != "Namespace" and "namespace" not in each["metadata"]
    ]


def _image_parts(image: str) -> tuple[str, dict[str, str]]:
    """The name, and what kustomize calls the rest of it."""
    if "@" in image:
        name, digest = image.split("@")
        return name, {"digest": digest}
    name, colon, tag = image.rpartition(":")
    if not colon or "/" in tag:  # the colon of a registry's port
        return image, {"newTag": "latest"}
    return name, {"newTag": tag}


def _object(version: str, kind: str, *, name: str = SHOP, **rest: Any) -> Manifest:
    labels = rest.pop("labels", {"app.kubernetes.io/component": "setup"})
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}, **rest}


def _pod_of_shop() -> dict[str, Any]:
    return {
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "fsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "shop",
                "image": "fiatgate",
                "command": ["python", "/shop/shop.py", "receive"],
                "ports": [{"name": "hook", "containerPort": SHOP_PORT}],
                "readinessProbe": {"tcpSocket": {"port": SHOP_PORT}, "periodSeconds": 2},
                "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [
                    {"name": "program", "mountPath": "/shop"},
                    {"name": "data", "mountPath": "/data"},
                ],
            }
        ],
        "volumes": [
            {"name": "program", "configMap": {"name": SHOP}},
            {"name": "data", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
