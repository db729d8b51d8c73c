"""Methods that are their operations: the request's fields are the parameters, or the server does not start."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest

from fiatgate.audit.v1 import audit_pb2 as pb
from fiatgate.queues.v1 import queues_pb2
from kit.base.proto import timestamp_from
from kit.rpc.client import channel
from kit.rpc.methods import by_name, serve
from kit.rpc.server import RpcServer

AUDIT, QUEUES = (
    each.DESCRIPTOR.services_by_name[name]
    for each, name in ((pb, "AuditService"), (queues_pb2, "QueuesService"))
)
AT = datetime(2026, 1, 2, tzinfo=UTC)


def call_of(operation: Callable[..., Any], method: str, **fields: str) -> Callable[[Any], Any]:
    call = by_name(operation, lambda _: {}, **fields).call(AUDIT.methods_by_name[method], {})
    return lambda request: call("deps", request)


def test_fields_are_given_by_name_and_an_optional_one_that_is_not_set_is_none() -> None:
    seen: list[Mapping[str, Any]] = []

    def list_acts(
        deps: str, *, merchant: str, since: datetime | None, until: datetime | None, **rest: Any
    ) -> None:
        seen.append({"deps": deps, "merchant": merchant, "since": since, "until": until})

    request = pb.ListActsRequest(merchant_id="m", since=timestamp_from(AT))
    call_of(list_acts, "ListActs", merchant="merchant_id")(request)
    assert seen == [{"deps": "deps", "merchant": "m", "since": AT, "until": None}]


def test_a_field_that_the_operation_does_not_take_is_an_error_at_the_start() -> None:
    def restart_head(deps: str, *, service: str) -> None:
        pass

    with pytest.raises(TypeError, match="unexpected keyword argument"):
        call_of(restart_head, "RestartHead")


def test_a_parameter_that_no_field_gives_is_an_error_at_the_start() -> None:
    def get_head(deps: str, *, service: str) -> None:
        pass

    with pytest.raises(TypeError, match="missing a required"):
        call_of(get_head, "GetHead")


def test_a_method_that_is_missing_is_an_error_at_the_start() -> None:
    with pytest.raises(TypeError, match="ListQueues"):
        serve(RpcServer(), QUEUES, None, {})


def test_the_answer_has_the_fields_of_the_response() -> None:
    server = RpcServer()
    serve(server, QUEUES, "a queue", {"ListQueues": by_name(lambda deps: deps, _queues)})
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with channel(f"127.0.0.1:{port}", name="queues") as opened:
        ask: grpc.UnaryUnaryMultiCallable[Any, Any] = opened.unary_unary(
            "/fiatgate.queues.v1.QueuesService/ListQueues",
            request_serializer=queues_pb2.ListQueuesRequest.SerializeToString,
            response_deserializer=queues_pb2.ListQueuesResponse.FromString,
        )
        assert [each.name for each in ask(queues_pb2.ListQueuesRequest()).queues] == ["a queue"]
    server.stop(0).wait(5)


def _queues(name: str) -> dict[str, Any]:
    return {"queues": [queues_pb2.Queue(name=name)]}
