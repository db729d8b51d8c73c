"""The program of the shop's pod, on the project's own image: `receive` takes webhooks and counts them on port 9001;
`ask` sends PER_SECOND requests a second to URL until its standard input ends, tries nothing twice, and prints a line of
JSON every other second and one with all at its end. KEY is the API key.
"""

import asyncio
import json
import os
import random
import re
import socket
import struct
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from kit.base.clock import monotonic_seconds

PORT = 9001
METHOD = "sepa"
MIX = {"create": 25, "read": 40, "list": 10, "page": 15, "buy": 10}
CREATED = Path("/data/created")  # the ids of all invoices that were answered, of all loads of this pod
READ_AGAIN = 300  # of them, at the end
UNDER_WAY = 200
HTTP_SECONDS = 15
TELL_SECONDS = 2
ASK_AGAIN_SECONDS = 1.5


def tell(answer: Any) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()


class Asked:
    """The results of the requests of one load."""

    def __init__(self) -> None:
        self.began = self.answered = monotonic_seconds()
        self.requests = 0
        self.not_asked = 0
        self.seconds: list[float] = []
        self.failed: Counter[str] = Counter()
        self.when: list[float] = []
        self.gap_seconds = 0.0

    def fine(self, seconds: float) -> None:
        now = monotonic_seconds()
        self.gap_seconds = max(self.gap_seconds, now - self.answered)
        self.answered = now
        self.seconds.append(seconds)

    def wrong(self, what: str, why: str) -> None:
        self.failed[f"{what}: {' '.join(why.split())[:160]}"] += 1
        self.when.append(round(monotonic_seconds() - self.began, 1))

    def figures(self) -> dict[str, Any]:
        ordered = sorted(self.seconds) or [0.0]
        now = monotonic_seconds()
        return {
            "requests": self.requests,
            "asked_seconds": round(now - self.began, 1),
            "not_asked": self.not_asked,
            "failed": sum(self.failed.values()),
            "failures": dict(self.failed.most_common(10)),
            "when": self.when[:50],
            "p50_ms": round(ordered[len(ordered) // 2] * 1000),
            "p99_ms": round(ordered[int(len(ordered) * 0.99)] * 1000),
            "gap_seconds": round(max(self.gap_seconds, now - self.answered), 1),
        }


class Shop:
    """Merchant and customers."""

    def __init__(self, http: aiohttp.ClientSession, url: str, callback: str, origin: str) -> None:
        self._http = http
        self._url = url
        self._callback = callback
        self._form = {"Origin": origin}
        self._created: list[str] = []
        self.asked = Asked()

    async def one(self) -> None:
        what = random.choices(list(MIX), list(MIX.values()))[0]
        if what == "create" or not self._created:
            await self._create()
        elif what == "read":
            await self._ask(what, "GET", f"/api/v1/invoices/{random.choice(self._created)}")
        elif what == "list":
            await self._ask(what, "GET", "/api/v1/invoices?per_page=5")
        elif what == "page":
            await self._ask(what, "GET", f"/pay/{random.choice(self._created)}")
        else:
            await self._buy()

    def _note(self, id: str) -> None:
        with CREATED.open("a") as file:
            file.write(f"{id}\n")

    async def unreadable(self) -> int:
        """How many of the invoices that were ever answered here can't be read, of `READ_AGAIN` at most."""
        known = _noted()
        wrong = 0
        for id in random.sample(known, min(READ_AGAIN, len(known))):
            async with self._http.get(f"{self._url}/api/v1/invoices/{id}") as answer:
                wrong += answer.status != 200
        return wrong

    async def _create(self) -> str | None:
        unique = f"{random.getrandbits(64):x}"
        body = {
            "amount": f"{random.randint(500, 900000) / 100:.2f}",
            "currency_code": "EUR",
            "customer_id": f"c{unique}",
            "external_id": f"o{unique}",
            "callback_url": self._callback,
        }
        text = await self._ask("create", "POST", "/api/v1/create-invoice", 201, json=body)
        if text is None:
            return None
        id: str = json.loads(text)["invoice_id"]
        self._created.append(id)
        self._note(id)
        return id

    async def _buy(self) -> None:
        if (id := await self._create()) is None:
            return
        page = await self._ask(
            "choose", "POST", f"/pay/{id}/methods", data={"method_code": METHOD}, headers=self._form
        )
        if page is None:
            return
        deal = re.search(r'name="deal_id" value="([^"]+)"', page)
        if deal is None:
            self.asked.wrong(
                "choose", "no deal on the page: " + re.sub("<[^>]*>", " ", page.split("<main")[-1])
            )
            return
        await self._ask("paid", "POST", f"/pay/{id}/paid", data={"deal_id": deal[1]}, headers=self._form)

    async def _ask(self, what: str, method: str, path: str, fine: int = 200, **rest: Any) -> str | None:
        """Returns the answer's text; None when it was not the status that is fine."""
        began = monotonic_seconds()
        self.asked.requests += 1
        try:
            async with self._http.request(method, self._url + path, **rest) as answer:
                text = await answer.text()
                if answer.status == fine:
                    self.asked.fine(monotonic_seconds() - began)
                    return text
                self.asked.wrong(what, f"{answer.status} {text}")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self.asked.wrong(what, f"{type(error).__name__} {error}")
        return None


def _noted() -> list[str]:
    return CREATED.read_text().split() if CREATED.exists() else []


async def ask() -> None:
    over = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    session = aiohttp.ClientSession(
        headers={"X-Api-Key": os.environ["KEY"]},
        timeout=aiohttp.ClientTimeout(total=HTTP_SECONDS),
        connector=aiohttp.TCPConnector(limit=UNDER_WAY),
    )
    async with session as http:
        shop = Shop(http, os.environ["URL"], os.environ["CALLBACK"], os.environ["ORIGIN"])
        under_way: set[asyncio.Task[None]] = set()
        due = told = monotonic_seconds()
        while not over.done():
            if len(under_way) < UNDER_WAY:
                under_way.add(task := asyncio.create_task(shop.one()))
                task.add_done_callback(under_way.discard)
            else:
                shop.asked.not_asked += 1
            if monotonic_seconds() - told > TELL_SECONDS:
                told = monotonic_seconds()
                tell(shop.asked.figures())
            due += 1 / int(os.environ["PER_SECOND"])
            await asyncio.sleep(max(0, due - monotonic_seconds()))
        await asyncio.gather(*under_way)
        figures = shop.asked.figures()
        tell({**figures, "unreadable": await shop.unreadable(), "over": True})


def receive() -> None:
    events: Counter[str] = Counter()
    orders: set[str] = set()

    async def hook(request: web.Request) -> web.Response:
        event = await request.json()
        events[event["event_id"]] += 1
        orders.add(event["external_id"])
        return web.Response(status=204)

    async def seen(request: web.Request) -> web.Response:
        twice = sum(count > 1 for count in events.values())
        return web.json_response({"orders": sorted(orders), "events": len(events), "twice": twice})

    app = web.Application()
    app.router.add_post("/hook", hook)
    app.router.add_get("/seen", seen)
    web.run_app(app, port=PORT, print=None)


def reach(*targets: str) -> None:
    """Prints which of these, as host:port, a connection can be made to: JSON, target -> True or False."""
    answers = {}
    for target in targets:
        host, _, port = target.partition(":")
        try:
            socket.create_connection((host, int(port)), timeout=4).close()
            answers[target] = True
        except OSError:
            answers[target] = False
    tell(answers)


def kept(service: str) -> None:
    """Prints for how many seconds the cluster's name server lets an answer for this Service be kept."""
    lines = [line.split() for line in Path("/etc/resolv.conf").read_text().splitlines()]
    server = next(line[1] for line in lines if line[:1] == ["nameserver"])
    domain = next(line[1] for line in lines if line[:1] == ["search"])
    labels = f"{service}.{domain}".split(".")
    name = b"".join(bytes([len(each)]) + each.encode() for each in labels if each) + b"\0"
    query = struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)
    longest, answers = 0, []
    for _ in range(3):
        with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(5)
            asking.sendto(query, (server, 53))
            answer = asking.recv(4096)
        # The first record follows the question; its name is a pointer of two bytes, then type, class, time to live.
        (ttl,) = struct.unpack_from(
            ">I", answer, len(query) + (2 if answer[len(query)] >= 0xC0 else len(name)) + 4
        )
        longest = max(longest, ttl)
        answers.append(ttl)
        threading.Event().wait(ASK_AGAIN_SECONDS)
    tell({"kept_seconds": longest, "is_kept": answers[-1] < answers[0]})


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "ask":
        asyncio.run(ask())
    else:
        commands: dict[str, Callable[..., None]] = {"receive": receive, "reach": reach, "kept": kept}
        commands[command](*arguments)
