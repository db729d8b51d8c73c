"""The steps, each of which ends as a row of the table."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import yaml

from kit.base.clock import monotonic_seconds
from tests.cluster import overlay, verdicts
from tests.cluster.kube import HELP, Failed, Kubectl, Manifest, Refusal, missing_images
from tests.cluster.load import Load, Operator, in_the_shop, until
from tests.cluster.overlay import MARK, SHOP, Overlay
from tests.cluster.verdicts import Row, load_text, of_load, of_policies

START_SECONDS: Final = 300
ROLL_SECONDS: Final = 300
LEAVE_SECONDS: Final = 120
SETTLE_SECONDS: Final = 90
GONE_SECONDS: Final = 180
LOAD_SECONDS: Final = 20
PLAIN: Final = ("env", "-u", "FIATGATE_TLS_CA", "-u", "FIATGATE_TLS_CERT", "-u", "FIATGATE_TLS_KEY")
SERVED: Final = ("gateway:80",)
CLOSED: Final = ("invoices:50051", "identity:50051", "postgres:5432", "nats:4222")

Seen = tuple[str, list[str]] | tuple[str, list[str], str]


class Trial:
    """Everything that is done in the namespace. `tell` gets a line of progress now and then.

    per_second  requests of the load
    at_once     Deployments that are restarted at the same time
    """

    def __init__(self, made: Overlay, *, per_second: int, at_once: int, tell: Callable[[str], None]) -> None:
        self.kubectl = Kubectl(made.namespace)
        self._overlay = made
        self._per_second = per_second
        self._at_once = at_once
        self._tell = tell
        self._operator = Operator(self.kubectl)
        self._key = ""

    def steps(self) -> dict[str, Callable[[], Seen]]:
        """In their order. Those after the second need it."""
        return {
            "apply": self.apply,
            "first steps": self.first_steps,
            "purchases": self.purchases,
            "rolling restart": self.rolling,
            "pods killed": self.pods_killed,
            "PostgreSQL killed": lambda: self._killed("postgres"),
            "NATS killed": lambda: self._killed("nats"),
            "network policies": self.policies,
            "mTLS on": lambda: self.mtls(on=True),
            "mTLS off": lambda: self.mtls(on=False),
            "verify": self.verify,
        }

    def step(self, name: str, does: Callable[[], Seen]) -> Row:
        """Does it. What kubectl says of a failure makes it a broken one."""
        began = monotonic_seconds()
        told = ""
        try:
            seen, wrong, *rest = does()
            told = rest[0] if rest else ""
        except Failed as failure:
            seen, wrong = "", [str(failure)]
        return Row(step=name, seen=seen, seconds=monotonic_seconds() - began, wrong=wrong, told=told)

    # -- the namespace

    def claim(self) -> None:
        """Raises Refusal when a namespace of this name is somebody's; deletes one that an earlier trial left."""
        name = self.kubectl.namespace
        there = [each for each in self.kubectl.get("namespaces") if each["metadata"]["name"] == name]
        if not there:
            return
        labels = there[0]["metadata"].get("labels", {})
        if not MARK.items() <= labels.items():
            raise Refusal(f"The namespace {name} is there and not of a trial: choose another by --namespace")
        self._tell(f"deleting the namespace {name}, which an earlier trial left")
        self.remove()

    def remove(self) -> str:
        """Deletes the namespace and waits. Returns what is left in spite of it, or nothing."""
        name = self.kubectl.namespace
        mine = [each["metadata"]["name"] for each in self._volumes()]
        self.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=true", seconds=GONE_SECONDS)
        until(lambda: not self._volumes(deleted=True), seconds=60)
        left = sorted({each["metadata"]["name"] for each in self._volumes()} & set(mine))
        return f"volumes that the storage class keeps: {', '.join(left)}" if left else ""

    def _volumes(self, *, deleted: bool = False) -> list[Manifest]:
        """The volumes of this namespace; `deleted`: those that the cluster itself deletes after use."""
        return [
            each
            for each in self.kubectl.get("persistentvolumes")
            if each["spec"].get("claimRef", {}).get("namespace") == self.kubectl.namespace
            and (not deleted or each["spec"].get("persistentVolumeReclaimPolicy") == "Delete")
        ]

    # -- steps

    def apply(self) -> Seen:
        whole = self._overlay.rendered()
        if beyond := overlay.beyond_the_namespace(whole):
            raise Failed(f"{beyond} would be left behind")
        self._apply(whole)
        began = monotonic_seconds()
        self._wait_available()
        seconds = monotonic_seconds() - began
        self.kubectl("wait", f"pod/{SHOP}", "--for=condition=Ready", "--timeout=60s", seconds=90)
        name_server = in_the_shop(self.kubectl, "kept", SHOP)  # nobody asked for it yet
        kept = "keeps answers" if name_server["is_kept"] else "asks anew each time"
        return (
            f"{len(whole)} objects, available after {seconds:.0f} s; "
            f"the name server {kept}, for up to {name_server['kept_seconds']} s",
            [],
        )

    def first_steps(self) -> Seen:
        do = self.kubectl.fiatgate
        do(
            "currencies",
            "set",
            "EUR",
            "--name",
            "Euro",
            "--symbol",
            "€",
            "--decimals",
            "2",
            "--min",
            "1",
            "--max",
            "10000",
        )
        do("rates", "set", "EUR", "0.92")
        do(
            "methods",
            "set",
            "sepa",
            "--currency",
            "EUR",
            "--name",
            "SEPA",
            "--min",
            "1",
            "--max",
            "10000",
            "--minutes",
            "30",
            "--active",
        )
        do(
            "requisites",
            "add",
            "sepa",
            "--holder",
            "Demo",
            "--account",
            "DE89 3704 0044 0532 0130 00",
            "--max-deals",
            "5000",
        )
        do("categories", "set", "shop", "--commission", "4")
        urls = ("--success-url", "https://shop.example/ok", "--fail-url", "https://shop.example/no")
        shop = do(
            "merchants",
            "create",
            "Shop",
            "--owner",
            "a@shop.example",
            "--category",
            "shop",
            *urls,
            "--active",
        )
        self._key = do("keys", "create", shop["merchant_id"])["api_key"]
        health = self.kubectl("exec", "deploy/cli", "--", "fiatgate", "status")
        return (
            f"a merchant with a key; all {len(health.splitlines())} lines of `fiatgate status` are well",
            [],
        )

    def purchases(self) -> Seen:
        with self._load() as load:
            self._rest(LOAD_SECONDS)
        wrong = of_load(load.figures, nothing_fails=True, gap_seconds=verdicts.RECOVERS_SECONDS)
        paid, lost = self._settled()
        return f"{load_text(load.figures)}; {paid} paid and their webhooks received", wrong + lost

    def rolling(self) -> Seen:
        names = [each["metadata"]["name"] for each in self.kubectl.get("deployments")]
        with self._load() as load:
            self._rest(5)
            with ThreadPoolExecutor(self._at_once) as threads:
                for name, done in zip(names, threads.map(self._restart, names), strict=True):
                    self._tell(
                        f"{name} is replaced after {done:.0f} s; {load.figures.get('failed', 0)} failed so far"
                    )
            self._tell("waiting until the old pods have left")
            if not until(lambda: not self._leaving(), seconds=LEAVE_SECONDS):
                raise Failed(f"still there: {', '.join(self._leaving())}")
            self._rest(5)
        return (
            f"{len(names)} Deployments, {self._at_once} at a time; {load_text(load.figures)}",
            of_load(load.figures, nothing_fails=True, gap_seconds=verdicts.RECOVERS_SECONDS),
        )

    def pods_killed(self) -> Seen:
        names = [each["metadata"]["name"] for each in self.kubectl.get("deployments")]
        with self._load() as load:
            self._rest(5)
            with ThreadPoolExecutor(self._at_once) as threads:
                for name, done in zip(names, threads.map(self._kill_one, names), strict=True):
                    self._tell(f"{name} is whole again after {done:.0f} s")
            self._rest(5)
        wrong = of_load(load.figures, nothing_fails=False, gap_seconds=verdicts.RECOVERS_SECONDS)
        return f"{len(names)} pods, one of each Deployment; {load_text(load.figures)}", wrong

    def _kill_one(self, deployment: str) -> float:
        """Deletes one of its pods. Returns the seconds until it has all again."""
        began = monotonic_seconds()
        owned = [
            each["metadata"]["name"]
            for each in self._pods()
            if each["metadata"]["name"].rsplit("-", 2)[0] == deployment
        ]
        self.kubectl("delete", "pod", owned[0], "--grace-period=0", "--force")
        self._rest(1)  # until the cluster counts it no more
        self._wait_rolled(f"deployment/{deployment}")
        return monotonic_seconds() - began

    def _killed(self, name: str) -> Seen:
        """Kills the pod of a StatefulSet of one after a second; its volume stays."""
        with self._load() as load:
            self._rest(5)
            began = monotonic_seconds()
            self.kubectl("delete", "pod", f"{name}-0", "--grace-period=1", seconds=90)
            self._wait_rolled(f"statefulset/{name}")
            away = monotonic_seconds() - began
            self._rest(LOAD_SECONDS)
        paid, lost = self._settled()
        wrong = of_load(load.figures, nothing_fails=False, gap_seconds=away + verdicts.RECOVERS_SECONDS)
        text = f"ready again after {away:.0f} s; {load_text(load.figures)}; {paid} paid so far, all announced"
        return text, wrong + lost

    def policies(self) -> Seen:
        reached = in_the_shop(self.kubectl, "reach", *SERVED, *CLOSED)
        wrong, told = of_policies(reached, SERVED)
        open_ones = [each for each, is_open in reached.items() if is_open]
        return f"a pod without rights reaches {', '.join(open_ones)} of {len(reached)} ports", wrong, told

    def mtls(self, *, on: bool) -> Seen:
        whole = self._overlay.rendered(mtls=on)
        source = "cert-manager"
        if on and "cert-manager.io" not in self.kubectl("api-versions"):
            whole = [each for each in whole if not overlay.is_of_cert_manager(each)]
            secrets = overlay.certificates()
            self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(secrets))
            source = "a CA made here, for want of cert-manager"
        self._apply(whole)
        for each in self.kubectl.get("deployments"):
            self._wait_rolled(f"deployment/{each['metadata']['name']}")
        until(lambda: not self._leaving(), seconds=LEAVE_SECONDS)
        with self._load() as load:
            self._rest(LOAD_SECONDS)
        paid, lost = self._settled()
        wrong = of_load(load.figures, nothing_fails=True, gap_seconds=verdicts.RECOVERS_SECONDS) + lost
        self.kubectl("exec", "deploy/cli", "--", "fiatgate", "status")
        plain = self._plain_call_is_answered()
        if plain == on:
            wrong.append(f"a call without a certificate is {'answered' if plain else 'refused'}")
        certified = f"certificates by {source}; " if on else ""
        return f"{certified}`fiatgate status` is well; {load_text(load.figures)}; {paid} paid so far", wrong

    def verify(self) -> Seen:
        paid, lost = self._settled()
        report: dict[str, Any] = {}

        def is_well() -> bool:
            nonlocal report
            try:
                report = self.kubectl.fiatgate("verify", "--grace-seconds", "0", seconds=120)
            except Failed as failure:
                report = {"ok": False, "problems": [str(failure)]}
            return bool(report["ok"])

        until(is_well, seconds=30)
        wrong = [] if report["ok"] else [str(each) for each in report["problems"]]
        return f"the books are right; {paid} purchases paid, credited and announced", wrong + lost

    # -- parts of them

    @contextmanager
    def _load(self) -> Iterator[Load]:
        load = Load(self.kubectl, self._key, self._per_second)
        with self._operator.working(), load.running():
            yield load

    def _settled(self) -> tuple[int, list[str]]:
        """How many purchases were confirmed so far, and what is wrong with them."""
        return self._operator.settled(seconds=SETTLE_SECONDS)

    def _apply(self, whole: Sequence[Manifest]) -> None:
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(whole), seconds=120)

    def _wait_available(self) -> None:
        began = monotonic_seconds()
        while monotonic_seconds() - began < START_SECONDS:
            deployments = self.kubectl.get("deployments")
            ready = sum(
                each["status"].get("availableReplicas", 0) >= each["spec"].get("replicas", 1)
                for each in deployments
            )
            if ready == len(deployments):
                return
            if images := sorted(set(missing_images(self._pods()))):
                raise Refusal(f"The cluster has no image {', '.join(images)}: build and load it ({HELP})")
            self._tell(f"{ready} of {len(deployments)} Deployments are available")
            self._rest(3)
        raise Failed(
            f"not all Deployments are available after {START_SECONDS} s: kubectl get pods -n {self.kubectl.namespace}"
        )

    def _restart(self, name: str) -> float:
        began = monotonic_seconds()
        self.kubectl("rollout", "restart", f"deployment/{name}")
        self._wait_rolled(f"deployment/{name}")
        return monotonic_seconds() - began

    def _wait_rolled(self, workload: str) -> None:
        """Until all its pods are ready, and of its newest form."""
        self.kubectl("rollout", "status", workload, f"--timeout={ROLL_SECONDS}s", seconds=ROLL_SECONDS + 10)

    def _pods(self) -> list[Manifest]:
        return self.kubectl.get("pods")

    def _leaving(self) -> list[str]:
        return [each["metadata"]["name"] for each in self._pods() if "deletionTimestamp" in each["metadata"]]

    def _plain_call_is_answered(self) -> bool:
        try:
            self.kubectl("exec", "deploy/cli", "--", *PLAIN, "fiatgate", "merchants", "list", "--json")
        except Failed:
            return False
        return True

    def _rest(self, seconds: float) -> None:
        threading.Event().wait(seconds)
