"""Reads an operator's logo from a file, or from an address that is fetched once, now. Customers load the logo from the
gateway only.
"""

import asyncio
from pathlib import Path
from typing import Annotated, Final

import typer

# More than a service accepts: the service's error names the limit.
MAX_BYTES: Final = 1024 * 1024
SECONDS: Final = 10


_HELP: Final = 'Shown to customers: WebP, PNG or JPEG, at most {}; "": none.'
MerchantLogo = Annotated[str | None, typer.Option(metavar="FILE|URL", help=_HELP.format("6 KiB"))]
MethodLogo = Annotated[str | None, typer.Option(metavar="FILE|URL", help=_HELP.format("2.5 KiB"))]


def content_of(source: str) -> bytes:
    """Returns the picture; empty for an empty source. Raises typer.BadParameter when it can't be read."""
    if not source:
        return b""
    is_address = source.startswith(("https://", "http://"))
    content = asyncio.run(_fetched(source)) if is_address else _read(Path(source))
    if not content or len(content) > MAX_BYTES:
        raise typer.BadParameter(
            f"{source} is empty or larger than {MAX_BYTES // 1024} KiB", param_hint="--logo"
        )
    return content


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--logo") from None


async def _fetched(url: str) -> bytes:
    """Fetches from https and public addresses only, without redirects, like all our calls to outside addresses."""
    from kit.egress.client import Egress, EgressError  # noqa: PLC0415  takes longer than most commands

    try:
        async with Egress() as egress:
            answer = await egress.call("GET", url, deadline_seconds=SECONDS, body_max_bytes=MAX_BYTES)
    except EgressError as error:
        raise typer.BadParameter(f"{url}: {error}", param_hint="--logo") from None
    if answer.status != 200 or not answer.complete:
        raise typer.BadParameter(f"{url} answered {answer.status}, or not all of it", param_hint="--logo")
    return answer.body
