"""Requests that no page of ours leads to, of programs and in addresses typed by hand: each has a clear answer, and none
is an error of ours.
"""

import re
import socket
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.console.house import House

FORM: Final = "Content-Type: application/x-www-form-urlencoded"
JSON_DEEP: Final = "%5B" * 3000
BOUNDARY: Final = "Content-Type: multipart/form-data; boundary=x"
PASSKEY: Final = "/sign-in/passkey"

Strange = tuple[str, str, tuple[str, ...], bytes]
"""Method, target, header fields, body."""


def get(target: str, *fields: str) -> Strange:
    return "GET", target, fields, b""


def post(target: str, body: bytes | str, *fields: str) -> Strange:
    return "POST", target, fields or (FORM,), body.encode() if isinstance(body, str) else body


ADDRESSES: Final = (
    *(
        get(target)
        for target in ("/nowhere", "/%00", "/%ff", "/people/%ff", "//evil.example/", "/" + "a" * 4000)
    ),
    *(
        get(target)
        for target in ("/static/x/..%2f..%2fconfig.py", "/static/x/%00", "/sign-in/", "/sign-in;x=1")
    ),
    *(
        get(f"/sign-in?{query}")
        for query in ("to=%00", "to=%ff", "to=//evil.example", "notice=%ff", "problem=%00")
    ),
    *(get(f"/sign-in?{query}") for query in ("problem=internal_error", "to=a&to=b", "%", "=&=&", "a&" * 500)),
    *(
        get(f"/invitation?token={token}")
        for token in ("%00", "%ff", "a&token=b", "a" * 3000, "%ed%a0%80", "%f0%9f")
    ),
    *(
        get(target)
        for target in ("/audit?since=x", "/audit.csv?after=%00", "/people?after=%ff", "/step-up?to=%ff")
    ),
)
METHODS: Final = tuple(
    (method, target, (), b"")
    for method in ("HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "FOO")
    for target in ("/", "/sign-in", "/sign-out", "/invitation?token=%ff", "/nowhere", "/sign-in/challenge")
)
BODIES: Final = (
    *(
        post("/sign-in", "{}", f"Content-Type: {kind}")
        for kind in ("application/json", "text/plain", "x", ";", "a/b;c")
    ),
    post("/sign-in", "email=a", "Accept: */*"),
    post("/sign-in", "email=a", f"{FORM}; charset=utf-16"),
    *(
        post("/sign-in", body)
        for body in ("", "&", "=", "email=%ff", "email=%ed%a0%80", "email=%00&password=%00&code=%00")
    ),
    *(
        post("/sign-in", body)
        for body in ("email=a&email=b&password=c&password=d", "to=%00", "to=//evil.example&email=a")
    ),
    *(post("/sign-in", f"{name}={'a' * 20_000}") for name in ("email", "password", "code", "to")),
    *(
        post("/sign-in", f"email=a@b.c&password=x&code={code}")
        for code in ("%E2%91%A0%E2%91%A1", "%D9%A1" * 6, "%00" * 6)
    ),
    post("/sign-in", b"\xff\xfe\x00"),
    post("/sign-in", "email=a", "Content-Type: multipart/form-data"),
    post("/sign-in", "--x--", BOUNDARY),
    post(
        "/sign-in",
        '--x\r\nContent-Disposition: form-data; name="email"\r\n\r\n\xff\r\n--x--\r\n'.encode("latin-1"),
        BOUNDARY,
    ),
    post("/sign-in", "--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--\r\n", BOUNDARY),
    post("/sign-in", "a" * 40_000),
    post("/sign-in/challenge", "{}", "Content-Type: application/json"),
    *(
        post("/invitation", f"token={token}")
        for token in ("", "%00", "%ff", "%ed%a0%80", "a" * 5000, "recovery.")
    ),
    post("/sign-out", ""),
    post("/step-up", "step_up_code=%00"),
)
PASSKEYS: Final = tuple(
    post(PASSKEY, f"challenge_id={challenge}&credential={credential}")
    for challenge in ("", "x", "%00", "00000000-0000-7000-8000-000000000000", "a" * 3000)
    for credential in (
        "",
        "null",
        "%7B%7D",
        "%5B%5D",
        "%7B%22id%22:1%7D",
        "%7B%22id%22:%22%5Cud800%22%7D",
        "%00",
        JSON_DEEP,
    )
)
HEADS: Final = (
    *(
        get("/", f"Cookie: {cookie}")
        for cookie in ("=", "a" * 12_000, "; " * 5000, "x=\xff", "\xff=x", 'a="b')
    ),
    *(
        get("/", f"Cookie: {prefix}fiatgate_{surface}={token}")
        for prefix in ("", "__Host-")
        for surface in ("desk", "dashboard")
        for token in ("", "x", "\xff\xff", "a" * 9000, "%00", '"x"')
    ),
    get("/", "Cookie: " + "; ".join(f"a{number}=b" for number in range(1500))),
    *(
        get("/sign-in", f"{name}: \xff\xfe")
        for name in ("User-Agent", "Accept-Language", "Origin", "X-Forwarded-For")
    ),
    *(get("/sign-in", f"Accept-Encoding: {encoding}") for encoding in ("\xff", "*;q=0")),
    *(
        post("/sign-in", "email=a", FORM, f"{name}: {value}")
        for name in ("Origin", "Sec-Fetch-Site")
        for value in ("\xff", "null")
    ),
    *(
        get("/sign-in", "X-Request-Id: \xff", f"traceparent: {value}")
        for value in ("\xff", "00-0-0-0", "x" * 500)
    ),
)


def answer_to(url: str, request: Strange) -> bytes:
    """All bytes of the answer on a connection of its own."""
    method, target, fields, body = request
    place = urlsplit(url)
    own = [f"Host: {place.netloc}", "Connection: close", f"Content-Length: {len(body)}"]
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *own, *fields, "", ""]).encode("latin-1")
    with socket.create_connection((place.hostname, place.port), timeout=15) as connection:
        connection.sendall(head + body)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    return answer


def fault_of(request: Strange, answer: bytes) -> str | None:
    """Returns the fault of the answer, an error of ours or content that is no page; None when there is none."""
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    if found is None:
        return "no answer"
    status = int(found[1])
    if status >= 500 or status == 429:  # 429: nothing looked at the request
        return f"status {status}"
    head, _, body = answer.partition(b"\r\n\r\n")
    is_page = b"text/html" in head and (b"<h1>" in body or request[0] == "HEAD")
    is_other = 300 <= status < 400 or b"application/json" in head or b"text/plain" in head
    return None if is_page or is_other or not body.strip(b"0\r\n") else f"status {status} and no page"


ALL: Final = (*ADDRESSES, *METHODS, *BODIES, *PASSKEYS, *HEADS)


@pytest.mark.parametrize(
    ("surface", "tried"), [("desk", ALL), ("dashboard", BODIES)], ids=["desk", "dashboard"]
)
def test_a_strange_request_has_a_clear_answer_and_is_no_error_of_ours(
    house: House, surface: str, tried: tuple[Strange, ...]
) -> None:
    """Both surfaces read heads and addresses by the same code."""
    url = house.desk if surface == "desk" else house.dashboard
    before = house.log().count("request_failed")
    faults = {}
    for request in tried:
        if fault := fault_of(request, answer_to(url, request)):
            faults[str(request)[:160]] = fault
    house.database("DELETE FROM guesses")
    assert faults == {}
    assert house.log().count("request_failed") == before
