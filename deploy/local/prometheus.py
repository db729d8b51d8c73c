"""A Prometheus installed on this machine, run beside the stack: it scrapes every process and has our rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deploy.local import child

RULES: Final = Path(__file__).resolve().parents[1] / "observability" / "alerts.yaml"
SCRAPE_SECONDS: Final = 5


@dataclass(frozen=True, kw_only=True)
class Prometheus:
    """One server: its binary, the folder of its configuration and data, its loopback port, and its targets."""

    program: str
    folder: Path
    port: int
    targets: Sequence[str]

    @property
    def url(self) -> str:
        """The address of its pages."""
        return f"http://127.0.0.1:{self.port}"

    def config(self) -> dict[str, Any]:
        """Returns its configuration."""
        return {
            "global": {
                "scrape_interval": f"{SCRAPE_SECONDS}s",
                "scrape_timeout": f"{SCRAPE_SECONDS}s",
                "evaluation_interval": f"{SCRAPE_SECONDS}s",
            },
            "rule_files": [str(RULES)],
            "scrape_configs": [
                {"job_name": "fiatgate", "static_configs": [{"targets": list(self.targets)}]},
            ],
        }

    def write_config(self) -> None:
        """Writes the configuration as JSON, which is also YAML."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._config.write_text(json.dumps(self.config(), indent=2))

    def command(self) -> list[str]:
        """Returns the command of the server in the foreground; it stops when its parent dies."""
        return child.command(
            self.program,
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        )

    @property
    def _config(self) -> Path:
        return self.folder / "prometheus.yml"
