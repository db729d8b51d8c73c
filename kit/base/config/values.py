"""Types of settings, each with its check. The message of a failed check names the expected form."""

import base64
import os
import re
from typing import Annotated, Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from pydantic import AfterValidator, BeforeValidator

from kit.base import keys

_SEVERAL_SERVERS: Final = (
    "expected of several servers "
    "postgresql://role:password@/database?host=a,b,c&port=5432,5432,5432&target_session_attrs=read-write"
)

_HOST_AND_PORT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5})").fullmatch


def _host_and_port(text: str) -> str:
    match = _HOST_AND_PORT(text)
    if match is None or int(match[2]) > 65535:
        raise ValueError("expected host:port")
    return text


def _postgresql_url(text: str) -> str:
    """Refuses the forms of several servers that libpq or SQLAlchemy does not read: both connect with this URL."""
    if not re.match(r"postgresql(\+psycopg2)?://", text):
        raise ValueError("expected postgresql://role:password@host:port/database")
    parts = urlsplit(text)
    query = parse_qs(parts.query)
    hosts = query.get("host", [])
    servers = ",".join(hosts).split(",")
    is_several = len(servers) > 1 or "," in parts.netloc.rpartition("@")[2]
    if not is_several and not _HOST_AND_PORT(servers[0]):
        return text
    ports = query.get("port", [""])[0].split(",")
    if len(hosts) != 1 or len(ports) != len(servers) or any(_HOST_AND_PORT(each) for each in servers):
        raise ValueError(_SEVERAL_SERVERS)
    if query.get("target_session_attrs") not in (["read-write"], ["primary"]):
        raise ValueError(
            f"a standby would be used without target_session_attrs=read-write: {_SEVERAL_SERVERS}"
        )
    return text


def nats_servers(text: str) -> list[str]:
    """Returns the URLs of a list of NATS servers. A comma in a password separates nothing: each URL has its scheme."""
    return re.split(r"\s*,\s*(?=\w+://)", text.strip())


def _nats_url(text: str) -> str:
    parts = [urlsplit(each) for each in nats_servers(text)]
    if not all(map(_has_host_and_port, parts)) or {each.scheme for each in parts} not in ({"nats"}, {"tls"}):
        raise ValueError(
            "expected nats://user:password@host:port or tls://user:password@host:port; several servers with commas "
            "between, each a whole URL of the same scheme"
        )
    return text


def _has_host_and_port(parts: SplitResult) -> bool:
    """Returns whether there is a host, and a port that can be one, if any: `a:4222,b:4222` has none."""
    try:
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _address(text: str) -> str:
    if not text or any(c.isspace() for c in text) or ":" not in text:
        raise ValueError("expected host:port or a gRPC target such as dns:///host:port")
    return text


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise ValueError("expected http(s)://host[:port][/prefix]")
    return text.rstrip("/")


def _readable_file(text: str) -> str:
    if not os.access(text, os.R_OK):
        raise ValueError("expected a file that can be read")
    return text


def _key(text: str) -> str:
    """Returns a key in one form. Reads 32 bytes in base64, in either alphabet, with or without padding."""
    try:
        key = keys.decoded(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError("expected 32 random bytes in base64 each, as `openssl rand -base64 32` prints them")
    return base64.urlsafe_b64encode(key).decode()


def _split(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


HostAndPort = Annotated[str, AfterValidator(_host_and_port)]
HostAndPortOrNone = Annotated[str, AfterValidator(lambda text: text and _host_and_port(text))]
PostgresUrl = Annotated[str, AfterValidator(_postgresql_url)]
PostgresUrlOrNone = Annotated[str, AfterValidator(lambda text: text and _postgresql_url(text))]
NatsUrl = Annotated[str, AfterValidator(_nats_url)]
Address = Annotated[str, AfterValidator(_address)]  # of another service, for kit.rpc.client
AddressOrNone = Annotated[str, AfterValidator(lambda text: text and _address(text))]
Key = Annotated[str, AfterValidator(_key)]
FileOrNone = Annotated[str, AfterValidator(lambda text: text and _readable_file(text))]
BaseUrl = Annotated[str, AfterValidator(_base_url)]  # without a slash at its end
BaseUrlOrNone = Annotated[str, AfterValidator(lambda text: text and _base_url(text))]
CommaSeparated = BeforeValidator(_split)  # Annotated[tuple[int, ...], CommaSeparated] reads "30,60,120"
