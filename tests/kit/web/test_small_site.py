"""A second HTTP process needs nothing of the gateway: `small_site` over the real server, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
FORK_SECONDS = 1


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("small_site") / "log"


@pytest.fixture(scope="module")
def url(log: Path) -> Iterator[str]:
    with site(log) as (url, _):
        yield url


@contextmanager
def site(log: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Runs the site until the block ends; gives its base URL and its process."""
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    process = _started(url, log)
    try:
        wait_until(
            lambda: process.poll() is not None or _answers(url), "the site", timeout_seconds=START_SECONDS
        )
        assert process.poll() is None, log.read_text()
        yield url, process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0


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


def test_a_body_above_the_bound_of_the_site_is_refused(url: str) -> None:
    answer = requests.post(url, {"note": "a" * 5000}, timeout=HTTP_SECONDS)
    assert (answer.status_code, answer.text) == (413, "<p>PAYLOAD_TOO_LARGE")


def test_bytes_that_are_no_http_get_the_answer_of_the_site(url: str) -> None:
    place = urlsplit(url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=HTTP_SECONDS) as client:
        client.sendall(b"hello\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n")


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


def test_a_stop_that_comes_while_a_worker_is_forked_is_not_lost(log: Path) -> None:
    """Until a worker has its own handlers it has its master's, which would note the stop for nobody."""
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    master = _started(url, log, SMALL_SITE_FORK_SECONDS=str(FORK_SECONDS))
    try:
        forked = psutil.Process(master.pid).children
        wait_until(lambda: bool(forked()), "the worker", timeout_seconds=START_SECONDS, every_seconds=0.01)
        master.send_signal(signal.SIGTERM)
        assert master.wait(STOP_SECONDS) == 0
    finally:
        for each in [*forked(), psutil.Process(master.pid)] if master.poll() is None else []:
            each.kill()
        master.wait(STOP_SECONDS)
