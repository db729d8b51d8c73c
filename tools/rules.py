"""Writes the alert rules in the form of the Prometheus operator: kustomize can't put a file into a resource.

Edit deploy/observability/alerts.yaml; `make docs` runs this; a test compares the two.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
ALERTS: Final = ROOT / "deploy" / "observability" / "alerts.yaml"
RULES: Final = ROOT / "deploy" / "k8s" / "components" / "monitoring" / "rules.yaml"
HEAD: Final = """\
# Made from deploy/observability/alerts.yaml by `make docs`; edit that.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: fiatgate
  labels:
    app.kubernetes.io/part-of: fiatgate
    app.kubernetes.io/component: setup
spec:
"""


def resource() -> str:
    """Returns the PrometheusRule, with the comments of the rules."""
    alerts = ALERTS.read_text()
    return HEAD + textwrap.indent(alerts[alerts.index("groups:") :], "  ")


if __name__ == "__main__":
    RULES.write_text(resource())
