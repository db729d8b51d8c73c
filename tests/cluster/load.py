"""One load of the shop's pod, and the operator who confirms what its customers mark as paid."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any, Final

from tests.cluster.kube import Failed, Kubectl
from tests.cluster.overlay import SHOP, SHOP_PORT

CONFIRM_EVERY_SECONDS: Final = 5
AT_ONCE: Final = 200  # deals that one command confirms
END_SECONDS: Final = 120
ORIGIN: Final = "http://localhost:8080"  # FIATGATE_PUBLIC_URL of the overlay local

Figures = dict[str, Any]


class Load:
    """Requests of the shop, from the start of the block to its end. `figures` then has what shop.py printed last."""

    def __init__(self, kubectl: Kubectl, key: str, per_second: int) -> None:
        self._kubectl = kubectl
        self._environment = {
            "KEY": key,
            "PER_SECOND": str(per_second),
            "URL": f"http://gateway.{kubectl.namespace}",
            "CALLBACK": f"http://{SHOP}.{kubectl.namespace}.svc:{SHOP_PORT}/hook",
            "ORIGIN": ORIGIN,
        }
        self.figures: Figures = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Raises Failed when the load ended before its time, or did not end."""
        given = [f"{name}={value}" for name, value in self._environment.items()]
        asking = self._kubectl.started(
            "exec", "-i", f"pod/{SHOP}", "--", "env", *given, "python", "/shop/shop.py", "ask"
        )
        reading = threading.Thread(target=self._read, args=(asking,), daemon=True)
        reading.start()
        try:
            yield
            assert asking.stdin is not None
            asking.stdin.close()  # the end of its standard input ends it
            reading.join(END_SECONDS)
        finally:
            asking.kill()
            asking.wait()
        if not self.figures.get("over"):
            assert asking.stderr is not None
            raise Failed(f"the load has not ended well: {asking.stderr.read()[-600:]}")

    def _read(self, asking: subprocess.Popen[str]) -> None:
        assert asking.stdout is not None
        for line in asking.stdout:
            self.figures = json.loads(line)


class Operator:
    """Confirms all that waits, every few seconds, until the block's end. A failure is tried again: the operator's pod
    is replaced too.
    """

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self.orders: set[str] = set()
        """The orders of the deals that were confirmed."""
        self.last_failure = ""
        self._asked: dict[str, str] = {}  # orders by the deals that a command was to confirm, and may have

    @contextmanager
    def working(self) -> Iterator[None]:
        over = threading.Event()

        def work() -> None:
            while not over.wait(CONFIRM_EVERY_SECONDS):
                self.confirm()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def confirm(self) -> bool:
        """Whether nothing was left to confirm. A command that fails may have confirmed some of its deals, or all: those
        that wait no more, as nobody else ends them.
        """
        try:
            found = self._kubectl.fiatgate("deals", "list", "--queue", "--limit", str(AT_ONCE))
            waiting = {each["deal_id"]: each["external_id"] for each in found}
            self.orders |= {order for deal, order in self._asked.items() if deal not in waiting}
            self._asked = waiting
            if not waiting:
                return True
            self._kubectl.fiatgate("deals", "confirm", "--yes", *waiting, seconds=120)
        except Failed as failure:
            self.last_failure = str(failure)
        return False

    def settled(self, *, seconds: float) -> tuple[int, list[str]]:
        """Returns how many purchases were confirmed so far, and what is wrong: deals that wait, and orders of which
        the shop has heard nothing; each has so many seconds.
        """
        confirmed = until(self.confirm, seconds=seconds)
        missing: set[str] = set()

        def announced() -> bool:
            nonlocal missing
            missing = self.orders - set(received(self._kubectl)["orders"])
            return not missing

        until(announced, seconds=seconds, every_seconds=3)
        wrong = [f"no webhook of {len(missing)} orders, as {min(missing)}"] if missing else []
        if not confirmed:
            wrong.append(f"deals wait to be confirmed: {self.last_failure}")
        if not self.orders:
            wrong.append("no purchase at all")
        return len(self.orders), wrong


def received(kubectl: Kubectl) -> Figures:
    """The webhooks that shop.py received: orders, events, and the number of events that came twice."""
    ask = f"import urllib.request as r; print(r.urlopen('http://localhost:{SHOP_PORT}/seen').read().decode())"
    return dict(json.loads(kubectl("exec", f"pod/{SHOP}", "--", "python", "-c", ask)))


def in_the_shop(kubectl: Kubectl, *arguments: str) -> Figures:
    """Returns the output of `shop.py ARGUMENTS` in its pod."""
    return dict(json.loads(kubectl("exec", f"pod/{SHOP}", "--", "python", "/shop/shop.py", *arguments)))


def until(done: Callable[[], bool], *, seconds: float, every_seconds: float = 2) -> bool:
    """Whether it came to be in time."""
    rest = threading.Event()
    for _ in range(ceil(seconds / every_seconds)):
        if done():
            return True
        rest.wait(every_seconds)
    return done()
