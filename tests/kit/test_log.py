"""Log lines: one JSON object each, with origin and request id, without secrets."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
import structlog

from kit.base import request_id
from kit.base.config.processes import Settings
from kit.observe import log

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, hook = root.handlers[:], root.level, threading.excepthook
    yield
    root.handlers[:], threading.excepthook = handlers, hook
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    _configure()
    return lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def _configure(log_format: Literal["json", "console"] = "json") -> None:
    log.configure("orders", Settings(log_format=log_format, log_level="info"))


def test_a_line_tells_service_time_level_and_the_request(lines: Lines) -> None:
    with request_id.bind("req-1"):
        log.get_logger().info("done", invoice_id="018f")
    log.get_logger().info("outside")

    inside, outside = lines()
    assert inside["service"] == "orders"
    assert inside["level"] == "info"
    assert inside["request_id"] == "req-1"
    assert inside["invoice_id"] == "018f"
    assert inside["timestamp"].endswith("Z")
    assert "request_id" not in outside


@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "X-Api-Key",
        "secret",
        "signing_secret",
        "Authorization",
        "password",
        "master_keys",
        "token",
        "requisite_account",
        "account",
        "holder",
        "database_url",
        "X-Signature",
        "cookie",
    ],
)
def test_what_is_named_like_a_secret_is_hidden(lines: Lines, key: str) -> None:
    log.get_logger().info("x", **{key: "hunter2"}, nested={"list": [{key: "hunter2"}]})

    (line,) = lines()
    assert "hunter2" not in json.dumps(line)
    assert line[key] == log.MASK


@pytest.mark.parametrize("key", ["requisite_id", "invoice_id", "key_id", "method", "reason"])
def test_what_is_needed_to_follow_a_case_is_shown(lines: Lines, key: str) -> None:
    log.get_logger().info("x", **{key: "018f"})

    assert lines()[0][key] == "018f"


def test_a_traceback_does_not_show_the_password_of_a_url(lines: Lines) -> None:
    try:
        raise OSError("no answer from postgresql://orders:hunter2@db:5432/orders")
    except OSError:
        log.get_logger().exception("failed")

    (line,) = lines()
    assert "hunter2" not in line["exception"]
    assert "OSError" in line["exception"]


def test_one_event_is_one_line_whatever_it_holds(lines: Lines) -> None:
    log.get_logger().info("x", text='forged\n{"level": "info"}')

    assert len(lines()) == 1


def test_lines_of_a_block_go_out_together_at_its_end_and_those_of_others_when_they_are_written(
    lines: Lines,
) -> None:
    with pytest.raises(ZeroDivisionError), log.in_one_write():
        logger = log.get_logger().bind()
        for number in range(3):
            logger.info("together", number=number)
        assert lines() == []
        thread = threading.Thread(target=lambda: log.get_logger().info("apart"))
        thread.start()
        thread.join()
        assert [line["event"] for line in lines()] == ["apart"]
        raise ZeroDivisionError
    assert [line["number"] for line in lines()] == [0, 1, 2]
    log.get_logger().info("after")
    assert [line["event"] for line in lines()] == ["after"]


def test_libraries_write_into_the_same_log(lines: Lines) -> None:
    _configure()  # pytest replaces stderr between fixtures and test
    logging.getLogger("some.library").warning("pool of %s is empty", 8)
    logging.getLogger("some.library").info("nobody needs this")

    (line,) = lines()
    assert line["event"] == "pool of 8 is empty"
    assert line["service"] == "orders"


def test_the_death_of_a_thread_is_logged(lines: Lines) -> None:
    _configure()  # pytest has hooks of its own during a test
    thread = threading.Thread(target=lambda: 1 // 0)
    thread.start()
    thread.join()

    (line,) = lines()
    assert line["event"] == "exception_uncaught"
    assert "ZeroDivisionError" in line["exception"]


def test_the_console_form_hides_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    _configure("console")

    log.get_logger().info("x", api_key="hunter2", invoice_id="018f")

    told = capsys.readouterr().err
    assert "hunter2" not in told
    assert "018f" in told
