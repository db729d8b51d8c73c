"""The part of the engine that takes new events without a claim (services.webhooks.delivery.fresh)."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from kit.work.worker import Outage, log_failure
from services.webhooks.clients import IdentityClient, SigningKey
from services.webhooks.delivery.fresh import Batch
from services.webhooks.delivery.lanes import Lanes
from services.webhooks.delivery.secrets import Secret, SecretsAhead
from services.webhooks.store.stages import Claimed, LaneKey, Shipment, lane_of


class Taking:
    """A `fresh.Taker`. Make it on the engine's loop; other threads call it.

    `added` is called when events were added to the lanes, `failed` when identity gave no secrets; `give_back` returns
    events without waiting, `release` waits for the database. While `paused` is set no event is taken.
    """

    def __init__(
        self,
        identity: IdentityClient,
        threads: Executor,
        lanes: Lanes,
        *,
        added: Callable[[], None],
        failed: Callable[[Exception], None],
        give_back: Callable[[Sequence[Claimed]], None],
        release: Callable[[Sequence[Claimed]], None],
    ) -> None:
        self.paused = False
        self._secrets = SecretsAhead(identity, threads)
        self._lanes = lanes
        self._added, self._failed = added, failed
        self._give_back, self._release = give_back, release
        self._loop = asyncio.get_running_loop()
        self._coming: list[Batch] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def may_take(self, key: LaneKey, ahead: int) -> bool:
        coming = sum(len(batch.claimed) for batch in self._coming.copy())
        return not self.paused and self._lanes.may_take(key, ahead + coming)

    def secret(self, key: SigningKey) -> Secret:
        return self._secrets.request(key)

    def take(self, batch: Batch) -> None:
        self._coming.append(batch)
        self._loop.call_soon_threadsafe(self._begin, batch)

    def give_back(self, claimed: Sequence[Claimed]) -> None:
        try:
            self._release(claimed)
        except Outage as error:  # the leases run out
            log_failure("delivery", error)

    async def end(self) -> None:
        """Waits until the events that were taken are in the lanes or given back."""
        while self._coming:
            await asyncio.wait(self._tasks) if self._tasks else await asyncio.sleep(0)

    def _begin(self, batch: Batch) -> None:
        task = asyncio.create_task(self._add(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _add(self, batch: Batch) -> None:
        try:
            secrets = {key: await asyncio.wrap_future(secret) for key, secret in batch.secrets.items()}
        except Exception as error:  # noqa: BLE001  a claim will try again
            self._failed(error)
            self._lanes.note_due(lane_of(each) for each in batch.claimed)
            self._give_back(batch.claimed)
        else:
            of_key = ((each, (each.terms.merchant_id, each.terms.key_id)) for each in batch.claimed)
            self._lanes.add(Shipment(each, secrets[key]) for each, key in of_key)
            self._added()
        finally:
            self._coming.remove(batch)
