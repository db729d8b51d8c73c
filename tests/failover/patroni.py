"""Three PostgreSQL nodes under Patroni on loopback: each a Patroni, which runs its PostgreSQL and votes by raft.

A node's PostgreSQL is reached by clients and by the other nodes at its `near_port`: that of a proxy.
"""

import importlib.util
import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import psutil
import psycopg2
import requests

from deploy.local import child, postgres
from deploy.local.errors import CannotStart
from deploy.local.ports import free_ports
from deploy.local.postgres import SUPERUSER, Postgres
from deploy.local.waiting import wait_until

NAMES: Final = ("one", "two", "three")
START_SECONDS: Final = 120
STOP_SECONDS: Final = 30
ANSWER_SECONDS: Final = 2
REPLICATOR: Final = "replicator"

TTL_SECONDS: Final = 20
LOOP_SECONDS: Final = 2
RETRY_SECONDS: Final = 5
"""A primary that is not heard of loses its place after `TTL_SECONDS`, the least that Patroni takes. Each node looks
every `LOOP_SECONDS`; a question without an answer is asked again for `RETRY_SECONDS`.
"""

# Patroni gives these itself, or takes no smaller value.
_PATRONIS_OWN: Final = (
    "port",
    "listen_addresses",
    "max_locks_per_transaction",
    "max_pred_locks_per_transaction",
)


class Node:
    """One node. `near_port` is the port at which others reach its PostgreSQL, `port` its own."""

    def __init__(self, name: str, folder: Path, *, near_port: int) -> None:
        self.name = name
        self.folder = folder
        self.near_port = near_port
        self.port, self.api_port, self.raft_port = free_ports(3, apart_from=[near_port])
        self.data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def raft_address(self) -> str:
        return f"127.0.0.1:{self.raft_port}"

    def start(self) -> None:
        """Starts Patroni, which starts PostgreSQL; returns at once."""
        with (self.folder / "patroni.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *postgres.account(),
                    *child.command(sys.executable, "-m", "patroni", str(self.folder / "patroni.json")),
                ],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        """Stops Patroni in good order, and with it PostgreSQL. One that Patroni has left behind is killed."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self.kill_postgres()

    def kill_postgres(self) -> None:
        """kill -9 PostgreSQL's first process; returns when its children have ended by themselves."""
        with suppress(psutil.NoSuchProcess):
            processes = self.server()
            if processes:
                processes[0].kill()
                psutil.wait_procs(processes, timeout=STOP_SECONDS)

    @contextmanager
    def frozen(self, *, with_postgres: bool = True) -> Iterator[None]:
        """Inside the block Patroni is stopped as by SIGSTOP, and all of PostgreSQL too unless told otherwise."""
        assert self._process is not None
        stopped = [psutil.Process(self._process.pid)]
        try:
            stopped[0].suspend()
            # Twice: PostgreSQL may have forked meanwhile.
            for _ in range(2 if with_postgres else 0):
                for process in self.server():
                    with suppress(psutil.NoSuchProcess):
                        process.suspend()
                        stopped.append(process)
            yield
        finally:
            for process in stopped:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def server(self) -> list[psutil.Process]:
        """Returns PostgreSQL's processes, the first of them first; none when it does not run."""
        try:
            first = psutil.Process(int((self.data / "postmaster.pid").read_text().splitlines()[0]))
            if not first.name().startswith("postgres"):
                return []
            return [first, *first.children(recursive=True)]
        except (FileNotFoundError, IndexError, ValueError, psutil.NoSuchProcess):
            return []

    def is_listening(self) -> bool:
        """Returns whether PostgreSQL takes connections, or would if it were not stopped."""
        with suppress(psutil.NoSuchProcess):
            for first in self.server()[:1]:
                return any(
                    each.laddr.port == self.port for each in first.net_connections("tcp4") if not each.raddr
                )
        return False

    def delete_data(self) -> None:
        shutil.rmtree(self.data)

    def state(self) -> Mapping[str, Any]:
        """Returns what its Patroni says of it: `role`, `state`, `timeline` ...; empty when it says nothing."""
        return _asked(self.api_port, "/patroni")

    def members(self) -> Sequence[Mapping[str, Any]]:
        """Returns what its Patroni says of all nodes: `name`, `role`, `state`, `lag`; empty when it says nothing."""
        members: Sequence[Mapping[str, Any]] = _asked(self.api_port, "/cluster").get("members", [])
        return members


class Nodes:
    """The three of them. Use as a context manager: in step when the block begins, stopped at its end."""

    def __init__(self, folder: Path, *, near_ports: Mapping[str, int], password: str) -> None:
        self._password = password
        self._replicators_password = secrets.token_urlsafe(24)
        self._raft_password = secrets.token_urlsafe(24)
        self.all = [Node(name, folder / name, near_port=near_ports[name]) for name in NAMES]

    def __enter__(self) -> Self:
        for node in self.all:
            node.folder.mkdir(parents=True)
            self._write_config(node)
        try:
            for node in self.all:
                node.start()
            wait_until(
                self.are_in_step, "three nodes in step", timeout_seconds=START_SECONDS, every_seconds=0.2
            )
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _stop(self) -> None:
        with ThreadPoolExecutor(len(self.all)) as threads:
            for _ in threads.map(Node.stop, self.all):
                pass

    def named(self, name: str) -> Node:
        return next(node for node in self.all if node.name == name)

    def primary(self) -> Node:
        """Returns the node that its Patroni calls the primary. Raises TimeoutError when there is none for long."""
        found: list[Node] = []

        def exists() -> bool:
            found[:] = [node for node in self.all if node.state().get("role") == "primary"]
            return len(found) == 1

        wait_until(exists, "one primary", timeout_seconds=START_SECONDS, every_seconds=0.2)
        return found[0]

    def are_in_step(self) -> bool:
        """Returns whether there are a primary and two standbys that receive from it, each of them a quorum's member.

        Patroni's answer is some seconds old: the primary itself must answer, too.
        """
        members = next((found for node in self.all if (found := node.members())), [])
        states = sorted((str(each["role"]), str(each["state"])) for each in members)
        if states != [("leader", "running"), *2 * [("quorum_standby", "streaming")]]:
            return False
        leader = next(str(each["name"]) for each in members if each["role"] == "leader")
        return is_primary(self.url_of(self.named(leader), "postgres")) is True

    def switch_over(self) -> None:
        """Asks the primary's Patroni to hand over to another node; returns when it has."""
        answer = requests.post(
            f"http://127.0.0.1:{(primary := self.primary()).api_port}/switchover",
            json={"leader": primary.name},
            timeout=2 * START_SECONDS,
        )
        if answer.status_code != 200:
            raise RuntimeError(f"no switchover: {answer.status_code} {answer.text}")

    def url(
        self, database: str, *, user: str = SUPERUSER, password: str | None = None, near: bool = False
    ) -> str:
        """Returns the URL of whichever node accepts writes; `near`: through the proxies."""
        ports = ",".join(str(node.near_port if near else node.port) for node in self.all)
        hosts = ",".join(["127.0.0.1"] * len(self.all))
        secret = quote(self._password if password is None else password, safe="")
        return f"postgresql://{user}:{secret}@/{database}?host={hosts}&port={ports}&target_session_attrs=read-write"

    def url_of(self, node: Node, database: str) -> str:
        """Returns the superuser's URL of one node, whatever it is."""
        return f"postgresql://{SUPERUSER}:{quote(self._password, safe='')}@127.0.0.1:{node.port}/{database}"

    def _write_config(self, node: Node) -> None:
        others = [each.raft_address for each in self.all if each is not node]
        server = Postgres(data=node.data, port=node.port, password=self._password)
        parameters = {name: value for name, value in server.settings().items() if name not in _PATRONIS_OWN}
        config = {
            "scope": "fiatgate",
            "name": node.name,
            "restapi": {
                "listen": f"127.0.0.1:{node.api_port}",
                "connect_address": f"127.0.0.1:{node.api_port}",
            },
            "raft": {
                "data_dir": str(node.folder / "raft"),
                "self_addr": node.raft_address,
                "partner_addrs": others,
                "password": self._raft_password,
            },
            "bootstrap": {"dcs": _rules(parameters), "initdb": _INITDB},
            "postgresql": {
                "listen": f"127.0.0.1:{node.port}",
                "connect_address": f"127.0.0.1:{node.near_port}",
                "data_dir": str(node.data),
                "bin_dir": str(postgres.binary("postgres").parent),
                "pgpass": str(node.folder / "pgpass"),
                # A node that lost its data copies the primary at once, not after a checkpoint spread over minutes.
                "basebackup": [{"checkpoint": "fast"}],
                "authentication": {
                    "superuser": {"username": SUPERUSER, "password": self._password},
                    "replication": {"username": REPLICATOR, "password": self._replicators_password},
                },
                "pg_hba": [
                    "host all all 127.0.0.1/32 scram-sha-256",
                    "host replication all 127.0.0.1/32 scram-sha-256",
                ],
            },
        }
        file = node.folder / "patroni.json"  # which is YAML, too
        file.touch(mode=0o600)
        file.write_text(json.dumps(config, indent=2))


_INITDB: Final = [
    {"encoding": "UTF8"},
    {"locale": "C"},
    {"locale-provider": "builtin"},
    {"builtin-locale": "C.UTF-8"},
    {"auth": "scram-sha-256"},
]


def _rules(parameters: Mapping[str, str]) -> dict[str, Any]:
    """Returns what all nodes follow: no commit is answered that only one node has, whatever becomes of the others."""
    return {
        "ttl": TTL_SECONDS,
        "loop_wait": LOOP_SECONDS,
        "retry_timeout": RETRY_SECONDS,
        "synchronous_mode": "quorum",
        "synchronous_mode_strict": True,
        "synchronous_node_count": 1,
        "failsafe_mode": True,
        "postgresql": {"use_pg_rewind": True, "use_slots": True, "parameters": dict(parameters)},
    }


def require() -> None:
    """Raises CannotStart when Patroni is not installed."""
    if importlib.util.find_spec("patroni") is None:
        raise CannotStart("Patroni is missing: run `make failover`, which installs it")


def is_primary(url: str) -> bool | None:
    """Returns whether the node behind a URL takes itself for the primary; None when it does not answer."""
    try:
        connection = psycopg2.connect(url, connect_timeout=ANSWER_SECONDS)
    except psycopg2.OperationalError:
        return None
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT NOT pg_is_in_recovery()")
            row = cursor.fetchone()
            return bool(row and row[0])
    except psycopg2.Error:
        return None
    finally:
        connection.close()


def _asked(port: int, path: str) -> dict[str, Any]:
    try:
        answer = requests.get(f"http://127.0.0.1:{port}{path}", timeout=ANSWER_SECONDS)
        found: dict[str, Any] = answer.json()
    except (requests.RequestException, ValueError):
        return {}
    return found
