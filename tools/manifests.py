"""Writes the manifests of the five services: deploy/k8s/service.yaml.j2, filled in from deploy/k8s/services.yaml.

`make docs` runs this; a test compares. The result is in the repository, so that kustomize, and tests without kubectl,
read plain files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import jinja2
import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
K8S: Final = ROOT / "deploy" / "k8s"


def manifests() -> dict[Path, str]:
    """Returns the text of each service's file. Raises jinja2.UndefinedError when a service lacks a value."""
    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701  YAML from our own values, not HTML
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.from_string((K8S / "service.yaml.j2").read_text())
    services = yaml.safe_load((K8S / "services.yaml").read_text())
    return {
        K8S / "base" / f"{name}.yaml": template.render(name=name, **own) for name, own in services.items()
    }


if __name__ == "__main__":
    for path, text in manifests().items():
        path.write_text(text)
