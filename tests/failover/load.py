"""Purchases at a steady rate, whatever becomes of those before: customers do not wait for each other."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Self

from tests.faults.shoppers import STEP_SECONDS, Shoppers

UNDERWAY_AT_MOST: Final = 60
"""Threads. While nothing is answered the purchases that were begun go on asking, and no further ones begin."""


class Load:
    """Use as a context manager: begins so many purchases a second inside the block, and ends when all are through."""

    def __init__(self, shoppers: Shoppers, *, per_second: int, seed: int) -> None:
        self._shoppers = shoppers
        self._pause_seconds = 1 / per_second
        self._seed = seed
        self._over = threading.Event()
        self._free = threading.Semaphore(UNDERWAY_AT_MOST)
        self._thread = threading.Thread(target=self._run, name="load")
        self.begun = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(3 * STEP_SECONDS)

    def _run(self) -> None:
        with ThreadPoolExecutor(UNDERWAY_AT_MOST) as threads:
            while not self._over.wait(self._pause_seconds):
                if self._free.acquire(blocking=False):
                    self.begun += 1
                    threads.submit(self._buy, random.Random(f"{self._seed}/{self.begun}"))

    def _buy(self, chance: random.Random) -> None:
        try:
            self._shoppers.noted_purchase(chance)
        finally:
            self._free.release()
