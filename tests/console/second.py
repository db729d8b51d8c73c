"""One more console beside those of the stack."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Final

import grpc
from grpc_status import rpc_status

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from kit.rpc.errors import refused_to_status, unauthenticated
from tests.console.house import House
from tests.gateway.process import answers

ROOT: Final = Path(__file__).parents[2]
START_SECONDS: Final = 30
STOP_SECONDS: Final = 20


@contextmanager
def second_console(surface: str, house: House, log: Path, **settings: str) -> Iterator[str]:
    """Runs one more process of a surface on the same services, with settings of its own; gives its address."""
    port = free_ports(1)[0]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")}
    environment |= {
        f"FIATGATE_{service.upper()}_ADDRESS": address for service, address in house.stack.addresses.items()
    }
    environment |= {
        f"FIATGATE_{surface.upper()}_BIND": f"127.0.0.1:{port}",
        f"FIATGATE_{surface.upper()}_WORKERS": "1",
        **settings,
    }
    url = f"http://localhost:{port}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "console", surface], cwd=ROOT, env=environment, stdout=out, stderr=out
        )
    try:
        wait_until(lambda: answers(url), f"the {surface}: {log}", timeout_seconds=START_SECONDS)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0


class _Alike(grpc.GenericRpcHandler):
    """A service that answers every call in the same way."""

    def __init__(self, answer: Callable[[grpc.ServicerContext], None]) -> None:
        self._answer = answer

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        def answer(_: bytes, context: grpc.ServicerContext) -> bytes:
            self._answer(context)
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)


@contextmanager
def _serving(answer: Callable[[grpc.ServicerContext], None]) -> Iterator[str]:
    with ThreadPoolExecutor(max_workers=64) as threads:
        server = grpc.server(threads, handlers=[_Alike(answer)])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None)


@contextmanager
def hanging() -> Iterator[str]:
    """The address of a service that accepts calls and answers none."""
    over = Event()

    def wait(_: grpc.ServicerContext) -> None:
        over.wait()

    with _serving(wait) as address:
        try:
            yield address
        finally:
            over.set()


@contextmanager
def just_started() -> Iterator[str]:
    """The address of a service that has no key of identity yet, so that it refuses each token."""
    refused = unauthenticated("ACTOR_INVALID", "The token of the person does not count", problem="key")
    status = rpc_status.to_status(refused_to_status(refused))
    with _serving(lambda context: context.abort_with_status(status)) as address:
        yield address
