"""A second HTTP process needs nothing of the gateway: `small_site` over the real server, in a process of its own."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
import requests

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until

ROOT = Path(__file__).parents[3]
PROGRAM = "tests.kit.web.small_site"
START_SECONDS = 30
STOP_SECONDS = 20
HTTP_SECONDS = 10


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("small_site") / "log"


@pytest.fixture(scope="module")
def url(log: Path) -> Iterator[str]:
    with site(log) as (url, _):
        yield url


@contextmanager
def site(log: Path, **settings: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Runs the site until the block ends; gives its base URL and its process."""
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    process = _started(url, log, **settings)
    try:
        wait_until(
            lambda: process.poll() is not None or _answers(url), "the site", timeout_seconds=START_SECONDS
        )
        assert process.poll() is None, log.read_text()
        yield url, process
    finally:
        stop(process)


def _started(url: str, log: Path, **more: str) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")}
    environment |= {
        "FIATGATE_SMALL_SITE_BIND": urlsplit(url).netloc,
        "FIATGATE_SMALL_SITE_WORKERS": "1",
        "FIATGATE_PUBLIC_URL": url,
        **more,
    }
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", PROGRAM], cwd=ROOT, env=environment, stdout=out, stderr=out
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(STOP_SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def connected(url: str, *, seconds: float = HTTP_SECONDS) -> socket.socket:
    place = urlsplit(url)
    return socket.create_connection((place.hostname or "", place.port or 0), timeout=seconds)


def read_all(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(65536), b""))


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=HTTP_SECONDS).status_code == 200
    except requests.RequestException:
        return False


def test_it_imports_nothing_of_the_gateway() -> None:
    """The rules of imports know the gateway's and kit's files; this holds for all that the process loads."""
    script = f"import sys, {PROGRAM}.__main__; sys.exit('gateway' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=START_SECONDS)


def test_a_page_is_translated_compressed_and_protected(url: str) -> None:
    page = requests.get(url, timeout=HTTP_SECONDS)
    assert page.status_code == 200
    assert "<h1>Eine kleine Seite</h1>" in page.text
    assert page.headers["Content-Encoding"] == "gzip"
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["X-Request-Id"]


def test_a_static_file_is_kept_for_ever_at_an_address_of_its_content(url: str) -> None:
    found = re.search(r'href="(/static/[0-9a-f]{12}/site.css)"', requests.get(url, timeout=HTTP_SECONDS).text)
    assert found is not None
    style = requests.get(url + found[1], timeout=HTTP_SECONDS)
    assert style.headers["Content-Type"] == "text/css; charset=utf-8"
    assert "immutable" in style.headers["Cache-Control"]
    assert requests.get(f"{url}/static/0123456789ab/site.css", timeout=HTTP_SECONDS).status_code == 404


def test_a_form_with_a_file_is_read_and_leads_back_to_the_page(url: str) -> None:
    fields = {"note": "<b>hello</b>\r\n"}
    page = requests.post(url, fields, files={"attached": b"0123456789"}, timeout=HTTP_SECONDS)
    assert [answer.status_code for answer in page.history] == [303]
    assert "<bdi>&lt;b&gt;hello&lt;/b&gt;, 10 bytes</bdi>" in page.text


def test_a_form_of_another_site_is_refused(url: str) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}
    answer = requests.post(url, {"note": "forged"}, headers=headers, timeout=HTTP_SECONDS)
    assert (answer.status_code, answer.text) == (400, "<p>VALIDATION_ERROR")
    assert "forged" not in requests.get(url, timeout=HTTP_SECONDS).text


@pytest.mark.parametrize("body", [b"note=" + b"a" * 100_000, [b"note=", b"a" * 5000, b"a" * 100_000]])
def test_a_body_above_the_bound_of_the_site_is_refused(url: str, body: bytes | list[bytes]) -> None:
    """With a Content-Length, and in chunks."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    data = body if isinstance(body, bytes) else iter(body)
    answer = requests.post(url, data, headers=headers, timeout=HTTP_SECONDS)
    assert (answer.status_code, answer.text) == (413, "<p>PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"hello\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nBroken header\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: odd\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnot hex\r\n",
    ],
)
def test_bytes_that_are_no_http_or_have_two_meanings_are_refused(url: str, request_bytes: bytes) -> None:
    with connected(url) as client:
        client.sendall(request_bytes)
        assert read_all(client).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_an_upgrade_is_ignored_and_the_body_is_read(url: str) -> None:
    """Some HTTP clients offer h2c with each request."""
    with connected(url) as client:
        client.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n"
            b"Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            b"Content-Length: 10\r\n\r\nnote=hello"
        )
        assert read_all(client).startswith(b"HTTP/1.1 303 ")


def test_each_request_leaves_one_line_in_the_log(url: str, log: Path) -> None:
    requests.get(f"{url}/nowhere", timeout=HTTP_SECONDS)
    wait_until(lambda: '"path":"/nowhere"' in log.read_text().replace(" ", ""), "the line", timeout_seconds=5)


def test_a_client_that_goes_on_sending_loses_no_request_to_a_stop(tmp_path: Path) -> None:
    """A request that was on its way while its connection was closed would have no answer."""
    with site(tmp_path / "log") as (url, process), requests.Session() as client:
        answers = [client.get(url, timeout=HTTP_SECONDS)]
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: not _answers(url), "the site to take no connections", timeout_seconds=STOP_SECONDS)
        while "close" not in answers[-1].headers.get("Connection", ""):
            answers.append(client.get(url, timeout=HTTP_SECONDS))
    assert [each.status_code for each in answers] == [200] * len(answers)
    assert len(answers) > 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_request_under_way_is_answered_during_a_stop(tmp_path: Path, workers: str) -> None:
    with (
        site(tmp_path / "log", FIATGATE_SMALL_SITE_WORKERS=workers) as (url, process),
        connected(url) as client,
    ):
        client.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\nnote="
        )
        requests.get(url, timeout=HTTP_SECONDS)  # by now the request above is being read
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: not _answers(url), "the site to take no connections", timeout_seconds=STOP_SECONDS)
        client.sendall(b"hello")
        answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 303 ")
    assert b"\r\nconnection: close\r\n" in answer


def test_a_stop_ends_workers_that_are_still_starting(tmp_path: Path) -> None:
    process = _started(
        f"http://127.0.0.1:{free_ports(1)[0]}",
        tmp_path / "log",
        FIATGATE_SMALL_SITE_WORKERS="2",
        FIATGATE_SECONDS_TO_START="1",
    )
    wait_until(
        lambda: len(psutil.Process(process.pid).children()) == 2,
        "both workers",
        timeout_seconds=START_SECONDS,
    )
    stop(process)


def test_workers_end_with_their_killed_master(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    master = _started(url, tmp_path / "log", FIATGATE_SMALL_SITE_WORKERS="2")
    wait_until(lambda: _answers(url), "the site", timeout_seconds=START_SECONDS)
    wait_until(
        lambda: len(psutil.Process(master.pid).children()) == 2, "both workers", timeout_seconds=START_SECONDS
    )
    workers = psutil.Process(master.pid).children()
    master.kill()
    master.wait(STOP_SECONDS)
    _, left = psutil.wait_procs(workers, timeout=STOP_SECONDS)
    assert not left


def test_more_idle_connections_than_the_soft_limit_of_files_stop_no_client(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    with ExitStack() as opened:
        try:
            url, _ = opened.enter_context(site(tmp_path / "log"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(600):
            opened.enter_context(connected(url))
        assert _answers(url)


def test_many_connections_may_wait_to_be_accepted(tmp_path: Path) -> None:
    """Else the first packets of a burst are dropped, and each client of it waits a second."""
    with site(tmp_path / "log") as (url, process), ExitStack() as opened:
        process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(300):
                opened.enter_context(connected(url, seconds=0.5))
        finally:
            process.send_signal(signal.SIGCONT)
