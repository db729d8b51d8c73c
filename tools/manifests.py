"""Writes the manifests of services and HTTP processes, their certificates, and the network policies of their calls.

The templates are deploy/k8s/*.j2; each process's own part is in deploy/k8s/processes.yaml, and the allowed calls are
options of the methods in protos/. `make docs` runs this; a test compares. The result is in the repository, so that
kustomize, and tests without kubectl, read plain files.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Final

import jinja2
import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, python looks beside the script only

from kit.base.services import PACKAGES  # noqa: E402
from kit.rpc.permissions import permission_of  # noqa: E402

K8S: Final = ROOT / "deploy" / "k8s"
PROCESSES: Final = yaml.safe_load((K8S / "processes.yaml").read_text())


def manifests() -> dict[Path, str]:
    """Returns the text of each file. Raises jinja2.UndefinedError when a process lacks a value."""
    services, http = PROCESSES["services"], PROCESSES["http"]
    components = K8S / "components"
    return {
        **{
            K8S / "base" / f"{name}.yaml": _rendered("service.yaml.j2", name=name, **own)
            for name, own in services.items()
        },
        **{
            K8S / "base" / f"{name}.yaml": _rendered("http.yaml.j2", name=name, **own)
            for name, own in http.items()
        },
        components / "network-policies" / "calls.yaml": _rendered("calls.yaml.j2", **_calls([*services])),
        components / "mtls" / "certificates.yaml": _rendered(
            "certificates.yaml.j2", processes=[*services, *http, "cli"]
        ),
        components / "mtls" / "kustomization.yaml": _rendered(
            "mtls.yaml.j2", services=[*services], http=[*http]
        ),
    }


def _calls(services: list[str]) -> dict[str, Any]:
    """Returns the callers of each service, and the services that each of them calls."""
    callers = {service: _callers_of(service) for service in services}
    names = sorted({name for each in callers.values() for name in each})
    called = {name: [service for service in services if name in callers[service]] for name in names}
    return {"callers": callers, "called": called}


def _callers_of(service: str) -> list[str]:
    packages = (*PACKAGES.get(service, (service,)), "audit")  # each service has acts
    files = (path for each in packages for path in (ROOT / "fiatgate" / each / "v1").glob("*_pb2.py"))
    contracts = [
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)).DESCRIPTOR
        for path in files
    ]
    methods = [
        f"{each.full_name}/{method.name}"
        for contract in contracts
        for each in contract.services_by_name.values()
        for method in each.methods
    ]
    return sorted(frozenset[str]().union(*(permission_of(each, service).callers for each in methods)))


def _rendered(template: str, **values: Any) -> str:
    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701  YAML from our own values, not HTML
        loader=jinja2.FileSystemLoader(K8S),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(**values)


if __name__ == "__main__":
    for path, text in manifests().items():
        path.write_text(text)
