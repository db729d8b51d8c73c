"""Acts of all services: merged by time, as sentences, and verified."""

import heapq
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from cli import connection, output
from cli.connection import is_away
from console.words.acts import done
from fiatgate.audit.v1 import audit_pb2 as pb
from kit.base.proto import timestamp_from
from kit.base.services import SERVICES
from kit.rpc.errors import Refused
from kit.rpc.values import LIST_MOST_ROWS

CALL_SECONDS: Final = 60


def merged(request: pb.ListActsRequest, away: list[str]) -> Iterator[pb.Act]:
    """Yields the matching acts of all services, newest first, read page by page. Services that do not answer are added
    to `away`; raises the reason when none does.
    """
    lists = [_of_service(service, request, away) for service in SERVICES]
    # Ids of acts are in the order of time.
    yield from heapq.merge(*lists, key=lambda act: act.act_id, reverse=True)


def _of_service(service: str, request: pb.ListActsRequest, away: list[str]) -> Iterator[pb.Act]:
    wanted = pb.ListActsRequest()
    wanted.CopyFrom(request)
    while True:
        try:
            page = connection.audit(service).ListActs(wanted, timeout=CALL_SECONDS).acts
        except Refused as refused:
            if not is_away(refused) or len(away) == len(SERVICES) - 1:
                raise
            away.append(service)
            return
        yield from page
        if len(page) < wanted.limit:
            return
        wanted.after_act_id = page[-1].act_id


def sentence_of(act: pb.Act) -> str:
    """Returns the end of a sentence that begins with the author: "confirmed deal 0197…"."""
    kind, _, id = act.object.partition(":")
    named = f"{kind} {output.short(id) if output.is_screen() else id}"
    if act.refused:
        return f"was refused {id or act.act} ({act.refused})"
    return done(act, named)


def changes_of(act: pb.Act) -> str:
    """Returns "status: pending → completed, …"."""
    return ", ".join(
        f"{each.field}: {each.before} → {each.after or 'nothing'}"
        if each.before
        else f"{each.field}: {each.after}"
        for each in act.changes
    )


def head_of(service: str) -> pb.GetHeadResponse:
    """Returns the end of the service's chain, with what it keeps of the chains of others."""
    return connection.audit(service).GetHead(pb.GetHeadRequest(), timeout=CALL_SECONDS)


class NoHeads(ValueError):
    """The file is not one of `fiatgate audit heads --json`."""


def exported(path: Path) -> list[pb.Head]:
    """Reads the file of `fiatgate audit heads --json`. Raises NoHeads."""
    try:
        return [
            pb.Head(
                service=each["service"],
                count=each["count"],
                hash=bytes.fromhex(each["hash"]),
                at=timestamp_from(datetime.fromisoformat(each["at"])),
            )
            for each in json.loads(path.read_text())["heads"]
        ]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NoHeads(f"{path} is no file of `fiatgate audit heads --json`: {error}") from None


def pages_of_check(service: str, known: Sequence[pb.Head]) -> Iterator[pb.CheckActsResponse]:
    """Yields the pages of the verification of one service's acts, against the `known` heads of its chain."""
    request = pb.CheckActsRequest(
        limit=LIST_MOST_ROWS, heads=[head for head in known if head.service == service]
    )
    while True:
        page = connection.audit(service).CheckActs(request, timeout=CALL_SECONDS)
        yield page
        if not page.more:
            return
        request.after = page.last
