"""Links by which the demo people sign in: `python -m deploy.local.demo_people HOME`, at each start.

demo/people.py says who gets one.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from demo import people
from deploy.local.home import Home, write_private_json
from fiatgate.accounts.v1.accounts_pb2_grpc import PeopleServiceStub
from kit.base.config.processes import CliSettings
from kit.base.config.variables import load
from kit.rpc import actors
from kit.rpc.client import channel
from kit.rpc.errors import Refused


@retry(
    retry=retry_if_exception(lambda error: isinstance(error, Refused) and error.reason == "DB_UNAVAILABLE"),
    stop=stop_after_delay(60),
    wait=wait_fixed(0.1),
    reraise=True,
)
def invite(home: Home, stack: dict[str, Any]) -> None:
    """Writes the links to `links.json`; None for a person who needs no link, or got it by e-mail.

    Waits for identity. Raises kit.rpc.errors.Refused.
    """
    demo = home.demo()
    if demo is None:
        raise RuntimeError(f"{home.demo_file} is missing")
    address = stack["services"]["identity"]["address"]
    with channel(address, name="identity", identity=load(CliSettings).identity) as opened:
        links = people.links(
            PeopleServiceStub(opened), merchant_id=demo["merchant_id"], owner_email=demo["owner_email"]
        )
    write_private_json(home.links_file, links)


if __name__ == "__main__":
    _home = Home(Path(sys.argv[1]))
    actors.carry_cli(f"make-run@{socket.gethostname()}")
    invite(_home, _home.running_stack())
