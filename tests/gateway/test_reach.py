"""A worker takes no connection before it has found the services: which of them a probe reaches is anybody's guess."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from deploy.local.waiting import wait_until
from tests.gateway.process import gateway_process
from tests.rolling.endpoints import Endpoints
from tests.support.stack import Stack

WAITING = "services_awaited"
ANSWERS = 20  # each over a connection of its own, so that both workers are met


def test_no_worker_takes_a_connection_before_the_names_of_all_services_are_there(
    stack: Stack, tmp_path: Path
) -> None:
    """As in a cluster where everything starts at once."""
    log = tmp_path / "gateway.log"
    log.touch()
    with Endpoints() as names, ThreadPoolExecutor(1) as threads:
        ports = {service: int(address.rpartition(":")[2]) for service, address in stack.addresses.items()}
        targets = {service: names.target(service, port) for service, port in ports.items()}

        def appear() -> None:
            wait_until(
                lambda: log.read_text().count(WAITING) == 2, "both workers to wait", timeout_seconds=30
            )
            for service in ports:
                names.add(service, "127.0.0.1")

        appeared = threads.submit(appear)
        with gateway_process(targets, log, FIATGATE_GATEWAY_WORKERS="2") as url:
            assert appeared.done(), "it answered before there was anybody to ask"
            answers = [requests.get(f"{url}/readyz", timeout=5) for _ in range(ANSWERS)]
    assert {answer.status_code for answer in answers} == {200}
