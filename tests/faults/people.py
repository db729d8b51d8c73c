"""People at desk and dashboard while processes die: a session lives until it is ended, and then for ever not."""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Final, Self
from unittest.mock import patch

from deploy.local import demo_people
from tests.e2e.market import Away, patiently
from tests.support.stack import Stack
from tests.support.visitors import NoAnswer, Visitor

EVERY_SECONDS: Final = 0.2


class People:
    """Use as a context manager: at each surface two sessions of one person, one to keep and one to end.

    Inside the block they look at pages until `stop`. `violations` is what must not have been.
    """

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._found: Counter[str] = Counter()
        self.pairs = [(self._signed_in(each), self._signed_in(each)) for each in ("desk", "dashboard")]
        self._ended: set[str] = set()
        self.pages = 0

    def __enter__(self) -> Self:
        self._threads = [
            threading.Thread(target=self._look, args=pair, name=pair[0].surface) for pair in self.pairs
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Returns once no one looks any more."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def violations(self) -> list[str]:
        """Looks once more, when all processes are back; returns a line for each kind of fault that was seen."""
        for kept, ended in self.pairs:
            try:
                self._check(kept, ended)
            except NoAnswer as away:
                self._found[f"{kept.surface}: no page after recovery, {away}"] += 1
        return [f"{what}, {count} times" for what, count in self._found.items()]

    def _signed_in(self, surface: str) -> Visitor:
        with patch.dict(os.environ, self._stack.settings):
            demo_people.invite(self._stack.home, self._stack.home.running_stack())
        url = self._stack.home.running_stack()["consoles"][f"console-{surface}"]
        return Visitor.by_link(surface, url, self._stack.home.links()[surface])

    def _look(self, kept: Visitor, ended: Visitor) -> None:
        while not self._over.wait(EVERY_SECONDS):
            try:
                self._check(kept, ended)
            except NoAnswer:
                continue
            except Exception as error:  # noqa: BLE001  in a thread it would be lost
                self._found[f"{kept.surface}: {error!r}"] += 1

    def _check(self, kept: Visitor, ended: Visitor) -> None:
        if not kept.is_signed_in():
            self._found[f"{kept.surface}: a session that was not ended is refused"] += 1
        self.pages += 1
        if ended.surface not in self._ended:
            ended.sign_out()  # until it is answered
            self._ended.add(ended.surface)
        elif ended.is_signed_in():
            self._found[f"{ended.surface}: a session works that was ended"] += 1


def signed_in(stack: Stack) -> People:
    """Signs the demo people in, again while a process is away."""

    def attempt() -> People:
        try:
            return People(stack)
        except NoAnswer as away:
            raise Away from away

    return patiently(attempt)
