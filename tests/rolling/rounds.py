"""One round, an upgrade: every pod of every Deployment replaced while the load goes on, the schemas migrated somewhere
in between, and then what the checker says.
"""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from deploy.local.waiting import wait_until
from tests.e2e.market import Shop
from tests.faults import checker
from tests.faults.journal import Journal, NotingReceiver
from tests.faults.rounds import duplicates
from tests.k8s.manifests import DEPLOYMENTS, Manifest, name
from tests.rolling.cluster import Cluster
from tests.rolling.load import Load, Seen
from tests.rolling.pods import Broken

SETTLE_SECONDS: Final = 90


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one round came to. `violations` is what matters: empty when every promise was kept.

    early  pods that ran on the schemas of the version before until they were migrated
    used   cores and MiB of a pod at the end of the load, by Deployment
    """

    seed: int
    restarts: int
    early: int
    load: Seen
    created: int
    webhooks: int
    used: Mapping[str, tuple[float, float]]
    violations: Sequence[str]

    @property
    def retried(self) -> int:
        return sum(self.load.retried.values())

    def slowest_seconds(self, share: float) -> float:
        """So long at most took this share of the requests."""
        return sorted(self.load.seconds)[int(share * (len(self.load.seconds) - 1))]


def run_round(
    cluster: Cluster,
    *,
    seed: int,
    per_second: int,
    at_once: int,
    tell: Callable[[str], None] = lambda text: None,
) -> Figures:
    """Roll all Deployments in an order of the seed, `at_once` of them at the same time."""
    before = cluster.restarts
    shop = Shop.opened(cluster)
    clients, receiver = (Journal(cluster.folder / f"{seed}-{what}.jsonl") for what in ("clients", "receiver"))
    with NotingReceiver(receiver) as endpoint:
        load = Load(cluster, shop, per_second=per_second, callback=endpoint.url(), journal=clients, seed=seed)
        found = _under_load(cluster, load, seed=seed, at_once=at_once, tell=tell)
        used = cluster.used()
        found += _settle(cluster, shop)
    found += [f"{each} was not migrated" for each in cluster.unmigrated()]
    clients.close()
    receiver.close()
    seen = checker.evidence(
        cluster.admin_url,
        secrets={shop.merchant_id: shop.secret},
        clients=clients.path,
        receiver=receiver.path,
    )
    found += [f"failed: {each}" for each in load.seen.failed] + checker.violations(seen)
    if twice := duplicates(seen.received):
        found.append(f"{twice} webhooks came again though they had been answered well")
    verified = cluster.cli("verify", "--grace-seconds", "0")
    if not verified["ok"]:
        found.append(f"fiatgate verify: {verified['problems']}")
    return Figures(
        seed=seed,
        restarts=cluster.restarts - before,
        early=cluster.began_before_migration(),
        load=load.seen,
        created=sum(each["what"] == "create" and each["http"] == 201 for each in seen.answers),
        webhooks=len(seen.received),
        used=used,
        violations=found,
    )


def _under_load(
    cluster: Cluster,
    load: Load,
    *,
    seed: int,
    at_once: int,
    tell: Callable[[str], None],
) -> list[str]:
    """What a pod did that it should not have done."""
    chance = random.Random(seed)
    order = chance.sample(DEPLOYMENTS, len(DEPLOYMENTS))
    pods = {name(each): chance.sample(range(cluster.count(each)), cluster.count(each)) for each in order}
    over = threading.Event()
    left: list[Future[None]] = []

    def take(step: Manifest | None) -> str | None:
        try:
            if step is None:
                cluster.migrate()
                tell("migrated")
            else:
                left.extend(cluster.roll(step, pods[name(step)], tell=tell))
        except Broken as broken:
            return str(broken)
        return None

    steps: list[Manifest | None] = [*order]
    steps.insert(chance.randrange(1, len(steps)), None)  # the migration

    with ThreadPoolExecutor(1) as asking, ThreadPoolExecutor(at_once) as rolling:
        asked = asking.submit(load.run, over.is_set)
        try:
            broken = [each for each in rolling.map(take, steps) if each]
            broken += [str(why) for each in left if (why := each.exception())]
        finally:
            over.set()
        asked.result()
    return broken


def _settle(cluster: Cluster, shop: Shop) -> list[str]:
    left = ""

    def settled() -> bool:
        nonlocal left
        left = checker.unsettled(cluster.admin_url, [shop.merchant_id])
        return not left

    try:
        wait_until(settled, "all to settle", timeout_seconds=SETTLE_SECONDS, every_seconds=0.2)
    except TimeoutError:
        return [f"not settled after {SETTLE_SECONDS} s: {left}"]
    return []
