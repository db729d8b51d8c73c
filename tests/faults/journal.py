"""What those outside saw: append-only files of JSON lines, one for what clients were answered, one for the receiver."""

from __future__ import annotations

import base64
import json
import random
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.receiver import Answer, Received, Receiver


class Journal:
    """A line is written before anybody acts upon it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)
        self._lock = threading.Lock()

    def note(self, **fields: Any) -> None:
        line = json.dumps(fields).encode() + b"\n"
        with self._lock:
            self._file.write(line)

    def close(self) -> None:
        self._file.close()


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)


class HungUp(Exception):
    """The receiver closes the connection instead of answering."""


class NotingReceiver(Receiver):
    """A merchant's endpoint that notes every request and answers it well."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def record(self, request: Received) -> Answer:
        self.note(request, mood="well")
        return Answer()

    def note(self, request: Received, *, mood: str) -> None:
        self._journal.note(
            path=request.path,
            headers=dict(request.headers),
            body=base64.b64encode(request.body).decode(),
            mood=mood,
        )


class MoodyReceiver(NotingReceiver):
    """One that sometimes fails: an error, no answer, a late one."""

    def __init__(self, journal: Journal, *, seed: int, late_seconds: float) -> None:
        super().__init__(journal)
        self._chance = random.Random(seed)
        self._late_seconds = late_seconds

    def record(self, request: Received) -> Answer:
        mood = self._chance.choices(("well", "error", "hang up", "late"), (86, 6, 5, 3))[0]
        self.note(request, mood=mood)
        if mood == "hang up":
            raise HungUp
        if mood == "error":
            return Answer(status=500)
        if mood == "late":
            self._closing.wait(self._late_seconds)
        return Answer()


def received_body(line: Mapping[str, Any]) -> bytes:
    return base64.b64decode(line["body"])
