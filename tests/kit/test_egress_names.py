"""The guard with a real name server behind it: whatever it answers, nothing that isn't public is called."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kit.egress.client import Egress, Forbidden, TimedOut, Unreachable
from tests.kit.name_server import NameServer, name_server
from tests.kit.observers import listening

PUBLIC, PUBLIC_6 = "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"

HOSTILE = {
    "this machine": ["127.0.0.1"],
    "this machine, elsewhere in its network": ["127.8.9.10"],
    "the end of this machine's network": ["127.255.255.254"],
    "this machine, v6": ["::1"],
    "unspecified": ["0.0.0.0"],
    "unspecified, v6": ["::"],
    "this network": ["0.1.2.3"],
    "private ten": ["10.0.0.1"],
    "private ten, last": ["10.255.255.255"],
    "private 172": ["172.16.0.1"],
    "private 172, last": ["172.31.255.254"],
    "private 192": ["192.168.178.1"],
    "carrier's": ["100.64.0.1"],
    "carrier's, last": ["100.127.255.254"],
    "metadata of Alibaba": ["100.100.100.200"],
    "metadata of AWS": ["169.254.169.254"],
    "metadata of ECS tasks": ["169.254.170.2"],
    "metadata of AWS, v6": ["fd00:ec2::254"],
    "metadata of Oracle": ["192.0.0.192"],
    "wire server of Azure": ["168.63.129.16"],
    "link local": ["169.254.0.1"],
    "protocol assignments": ["192.0.0.8"],
    "documentation 1": ["192.0.2.1"],
    "documentation 2": ["198.51.100.1"],
    "documentation 3": ["203.0.113.1"],
    "AS112": ["192.31.196.1"],
    "AMT": ["192.52.193.1"],
    "6to4 relay": ["192.88.99.1"],
    "AS112 direct": ["192.175.48.1"],
    "benchmarks": ["198.18.0.1"],
    "benchmarks, last": ["198.19.255.255"],
    "multicast": ["224.0.0.251"],
    "multicast, last": ["239.255.255.255"],
    "reserved": ["240.0.0.1"],
    "broadcast": ["255.255.255.255"],
    "mapped": ["::ffff:127.0.0.1"],
    "mapped metadata": ["::ffff:169.254.169.254"],
    "translated": ["::ffff:0:127.0.0.1"],
    "compatible": ["::127.0.0.1"],
    "NAT64": ["64:ff9b::127.0.0.1"],
    "NAT64 metadata": ["64:ff9b::a9fe:a9fe"],
    "NAT64, local": ["64:ff9b:1::127.0.0.1"],
    "discard": ["100::1"],
    "6to4 of this machine": ["2002:7f00:1::1"],
    "6to4 of a private one": ["2002:a00:1::1"],
    "Teredo": ["2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "ORCHID": ["2001:20::1"],
    "benchmarks, v6": ["2001:2::1"],
    "documentation, v6": ["2001:db8::1"],
    "documentation, v6, the new one": ["3fff::1"],
    "6bone": ["3ffe::1"],
    "SRv6": ["5f00::1"],
    "unique local": ["fd12:3456:789a::1"],
    "unique local, unassigned": ["fc00::1"],
    "link local, v6": ["fe80::1"],
    "site local": ["fec0::1"],
    "multicast, v6": ["ff02::1"],
    "public first": [PUBLIC, "127.0.0.1"],
    "public last": ["127.0.0.1", PUBLIC],
    "public among many": [PUBLIC, "1.1.1.1", "10.0.0.1", "8.8.8.8"],
    "public v4, private v6": [PUBLIC, "::1"],
    "private v4, public v6": ["127.0.0.1", PUBLIC_6],
    "an alias of this machine": ["inside.example."],
    "an alias of an alias": ["chain.example."],
    "an alias of a cluster's service": ["postgres.default.svc.cluster.local."],
    "an alias of localhost": ["localhost."],
    "an alias to nowhere": ["missing.example."],
    "no address": [],
}


@pytest.fixture(scope="module")
def names() -> Iterator[NameServer]:
    with name_server() as server:
        server.tell("inside.example", ["127.0.0.1"])
        server.tell("chain.example", ["inside.example."])
        server.tell("postgres.default.svc.cluster.local", ["10.96.0.12"])
        server.tell("localhost", ["127.0.0.1", "::1"])
        yield server


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_name_that_leads_inside_reaches_nobody(
    answer: list[str], names: NameServer, attempts: list[Any]
) -> None:
    names.tell("shop.example", answer)

    async def call() -> int:
        async with listening() as listener, Egress() as egress:
            with pytest.raises((Forbidden, Unreachable)):
                await egress.call("POST", f"https://shop.example:{listener.port}/", deadline_seconds=5)
            return listener.connections

    assert asyncio.run(call()) == 0
    assert attempts == []


@pytest.mark.parametrize(
    "host", ["shop.example", "shop.example.", "SHOP.EXAMPLE", "bücher.example", "xn--bcher-kva.example"]
)
def test_however_the_name_is_written_its_answer_is_vetted(
    host: str, names: NameServer, attempts: list[Any]
) -> None:
    for name in ("shop.example", "SHOP.EXAMPLE", "xn--bcher-kva.example"):
        names.tell(name, ["127.0.0.1"])

    async def call() -> int:
        async with listening() as listener, Egress() as egress:
            with pytest.raises(Forbidden, match="public"):
                await egress.call("POST", f"https://{host}:{listener.port}/", deadline_seconds=5)
            return listener.connections

    assert asyncio.run(call()) == 0
    assert attempts == []


def test_an_answer_that_changes_between_calls_is_vetted_at_each(
    names: NameServer, attempts: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.egress.client.RESOLVED_SECONDS", 0)  # each call asks anew
    names.tell("shop.example", [PUBLIC], ["127.0.0.1"], [PUBLIC], ["10.0.0.1"])

    async def call() -> tuple[list[type[Exception]], int]:
        ended: list[type[Exception]] = []
        async with listening() as listener, Egress() as egress:
            for _ in range(4):
                with pytest.raises((Forbidden, Unreachable)) as refused:
                    await egress.call("POST", f"https://shop.example:{listener.port}/", deadline_seconds=5)
                ended.append(refused.type)
            return ended, listener.connections

    ended, connections = asyncio.run(call())
    assert ended == [Unreachable, Forbidden, Unreachable, Forbidden]
    assert connections == 0
    assert {address[0] for address in attempts} == {PUBLIC}, "what was vetted, and nothing else, is called"


def test_within_one_call_the_name_is_asked_for_once(names: NameServer, attempts: list[Any]) -> None:
    names.tell("shop.example", [PUBLIC], ["127.0.0.1"])
    before = names.asked["shop.example"]

    async def call() -> None:
        async with Egress() as egress:
            with pytest.raises(Unreachable):
                await egress.call("POST", "https://shop.example/", deadline_seconds=5)

    asyncio.run(call())
    assert names.asked["shop.example"] - before == 1
    assert {address[0] for address in attempts} == {PUBLIC}


def test_a_name_server_that_says_nothing_ends_with_the_deadline(
    names: NameServer, attempts: list[Any]
) -> None:
    names.be_silent("slow.example")

    async def call() -> None:
        async with Egress() as egress:
            with pytest.raises(TimedOut, match=r"no answer within 0.5 s"):
                await egress.call("POST", "https://slow.example/", deadline_seconds=0.5)

    asyncio.run(call())
    assert attempts == []


def test_a_name_that_may_be_called_is_called_where_the_server_says(
    names: NameServer, attempts: list[Any]
) -> None:
    names.tell("shop.example", ["inside.example."])

    async def call() -> tuple[int, int]:
        async with listening() as listener, Egress(allow_private=True) as egress:
            answer = await egress.call("POST", f"http://shop.example:{listener.port}/", deadline_seconds=5)
            return answer.status, listener.connections

    assert asyncio.run(call()) == (200, 1)
    assert {address[0] for address in attempts} == {"127.0.0.1"}
