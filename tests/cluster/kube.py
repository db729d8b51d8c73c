"""`kubectl`, as it is set up here: one namespace of the cluster that it points to."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any, Final

HELP: Final = 'docs/operations/kubernetes.md, "Try it"'
CLI: Final = ("exec", "deploy/cli", "--", "fiatgate")

Manifest = dict[str, Any]


class Refusal(Exception):
    """Why nothing can be tried here, and what to do: one line."""


class Failed(Exception):
    """A command of kubectl that failed, with what it said."""


class Kubectl:
    """Commands in one namespace. Each raises Failed when it fails or takes too long."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def __call__(self, *arguments: str, stdin: str | None = None, seconds: float = 60) -> str:
        command = ["kubectl", "--namespace", self.namespace, *arguments]
        try:
            ended = subprocess.run(
                command,
                input=stdin or "",
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
                process_group=0,  # Ctrl-C is for the command that cleans up
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"kubectl {' '.join(arguments[:6])}: no end after {seconds:g} s") from None
        if ended.returncode != 0:
            said = (ended.stderr.strip() or ended.stdout.strip())[-600:]
            raise Failed(f"kubectl {' '.join(arguments[:6])}: {said}")
        return ended.stdout

    def get(self, *arguments: str) -> list[Manifest]:
        found = json.loads(self("get", *arguments, "--output", "json"))
        return list(found["items"]) if found["kind"] == "List" else [found]

    def fiatgate(self, *arguments: str, seconds: float = 60) -> Any:
        return json.loads(self(*CLI, *arguments, "--json", seconds=seconds))

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["kubectl", "--namespace", self.namespace, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )


def require_cluster() -> None:
    """Raises Refusal when there is no kubectl or no cluster behind it."""
    if shutil.which("kubectl") is None:
        raise Refusal("kubectl is not here: install it, then make a cluster with `kind create cluster`")
    try:
        Kubectl("default")("version", "--request-timeout=10s", seconds=30)
    except Failed:
        raise Refusal(
            f"No cluster answers kubectl: make one with `kind create cluster`, then build and load the image ({HELP})"
        ) from None


def missing_images(pods: list[Manifest]) -> Iterator[str]:
    """Names of the images that these pods can't get."""
    without = {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"}
    for each in pods:
        for container in each.get("status", {}).get("containerStatuses", ()):
            if container["state"].get("waiting", {}).get("reason") in without:
                yield str(container["image"])
