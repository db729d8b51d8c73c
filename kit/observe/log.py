"""Structured logs: one line per fact, JSON for machines or colour for people, always to stderr.

Every line carries timestamp, level, service and, inside a request, request_id; with traces on (kit.observe.tracing)
also trace_id and span_id. Secrets, keys and requisites are masked by the name of their field. The mask is a second
line of defence: do not log them in the first place.
"""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self, cast

from kit.base import request_id
from kit.observe import tracing

# Not imported with the loggers: these take a third of the time of an operator's command, which has no log.
if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

    from kit.base.config.processes import Settings

MASK: Final = "[hidden]"

_SECRET_KEY = re.compile(
    r"api_?key|secret|authorization|password|passwd|token|master_?key|private_?key|signing_?key|cookie|signature"
    r"|requisite(?!_id|s_)|account|holder|database_url|nats_url|dsn",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"(?<=://)[^/\s@]+@")
_NESTED = (Mapping, list, tuple)
# Most values have one of these types: testing for a Mapping costs more than all the rest here.
_FLAT = {str, int, type(None)}
_secret_keys: dict[str, bool] = {}  # field names are few and come again on every line


class _Logger:
    """Stands for structlog's logger, and writes nothing in a process that has not imported structlog."""

    def __getattr__(self, name: str) -> Any:
        structlog = sys.modules.get("structlog")
        return self._nothing if structlog is None else getattr(structlog.get_logger(), name)

    def _nothing(self, *_: object, **__: object) -> Self:
        return self


def get_logger() -> FilteringBoundLogger:
    """Returns a logger, usable at module level: it reads the configuration at each line."""
    return cast("FilteringBoundLogger", _Logger())


def configure(service: str, settings: Settings) -> None:
    """Sets up structlog, the standard library's logging (for libraries), and the log of uncaught exceptions."""
    import structlog  # noqa: PLC0415  a process without a log does not import it

    level = getattr(logging, settings.log_level.upper())
    shared: list[Processor] = [
        _Origin(service),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        redact,
    ]
    renderer: list[Processor] = (
        [structlog.processors.format_exc_info, hide_passwords, structlog.processors.JSONRenderer()]
        if settings.log_format == "json"
        # Plain tracebacks: the others print local variables, and with them keys and requisites.
        else [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    )
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: structlog.WriteLogger(
            _here.lines or sys.stderr
        ),  # the stream of this moment: tests replace it
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))  # debug and info lines of libraries are for their authors
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda args: _log_uncaught(args.exc_type, args.exc_value, args.exc_traceback)


class _Here(threading.local):
    lines: io.StringIO | None = None


_here = _Here()


@contextmanager
def in_one_write() -> Iterator[None]:
    """Collects the lines of loggers that are bound in this block and writes them at once at its end.

    Each write releases the interpreter, and a thread beside a busy event loop waits long to get it back.
    """
    _here.lines = lines = io.StringIO()
    try:
        yield
    finally:
        _here.lines = None
        sys.stderr.write(lines.getvalue())
        sys.stderr.flush()


class _Origin:
    """Adds the service, the id of the request being worked on, and those of its trace."""

    def __init__(self, service: str) -> None:
        self._service = service

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        event["service"] = self._service
        if id := request_id.current():
            event.setdefault("request_id", id)
        for name, value in tracing.ids().items():
            event.setdefault(name, value)
        return event


def redact(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Masks the values of fields with a secret name, at any depth."""
    for key, value in event.items():
        if _is_secret(key):
            event[key] = MASK
        # exc_info must stay a tuple: a copy of it would give no traceback.
        elif type(value) not in _FLAT and isinstance(value, _NESTED) and key != "exc_info":
            event[key] = _redacted(value)
    return event


def hide_passwords(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Masks user and password of URLs inside tracebacks: drivers quote their connection string."""
    if "exception" in event:
        event["exception"] = _URL_PASSWORD.sub(f"{MASK}@", str(event["exception"]))
    return event


def _redacted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: MASK if _is_secret(str(key)) else _redacted(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(each) for each in value]
    return value


def _is_secret(key: str) -> bool:
    known = _secret_keys.get(key)
    if known is None:
        known = _SECRET_KEY.search(key.replace("-", "_")) is not None
        if len(_secret_keys) < 1000:
            _secret_keys[key] = known
    return known


def _log_uncaught(kind: type[BaseException], error: BaseException | None, trace: Any) -> None:
    if issubclass(kind, KeyboardInterrupt | SystemExit):
        return
    get_logger().critical("exception_uncaught", exc_info=(kind, error, trace))
