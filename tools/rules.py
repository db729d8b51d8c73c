"""Writes the alert rules in the form of the Prometheus operator: kustomize can't put a file into a resource.

Edit the files of deploy/observability; `make docs` runs this; a test compares them.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
OBSERVABILITY: Final = ROOT / "deploy" / "observability"
COMPONENTS: Final = ROOT / "deploy" / "k8s" / "components"
ALERTS: Final = OBSERVABILITY / "alerts.yaml"
RULES: Final = COMPONENTS / "monitoring" / "rules.yaml"
POSTGRES_ALERTS: Final = OBSERVABILITY / "alerts-postgres.yaml"
POSTGRES_RULES: Final = COMPONENTS / "postgres-cloudnativepg" / "rules.yaml"
HEAD: Final = """\
# Made from deploy/observability/{source} by `make docs`; edit that.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {name}
  labels:
    app.kubernetes.io/part-of: fiatgate
    app.kubernetes.io/component: setup
spec:
"""


def resources() -> dict[Path, str]:
    """Returns the text of each PrometheusRule, with the comments of the rules."""
    return {
        RULES: _resource(ALERTS, name="fiatgate"),
        POSTGRES_RULES: _resource(POSTGRES_ALERTS, name="postgres"),
    }


def _resource(source: Path, *, name: str) -> str:
    alerts = source.read_text()
    head = HEAD.format(source=source.name, name=name)
    return head + textwrap.indent(alerts[alerts.index("groups:") :], "  ")


if __name__ == "__main__":
    for path, text in resources().items():
        path.write_text(text)
