"""Refused crosses the wire and comes back the same; everything else becomes one of two documented codes."""

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from fiatgate.errors.v1 import error_reason_pb2
from kit.rpc import errors
from kit.rpc.errors import Refused


def test_a_refusal_survives_the_wire_with_code_message_and_metadata() -> None:
    sent = errors.already_exists(
        "DUPLICATE_EXTERNAL_ID", "external_id is in use", invoice_id="018f", payment_link="https://x/ü"
    )

    received = errors.refused_from_status(errors.refused_to_status(sent))

    assert received is not None
    assert received.reason == "DUPLICATE_EXTERNAL_ID"
    assert received.message == "external_id is in use"
    assert received.code is grpc.StatusCode.ALREADY_EXISTS
    assert received.metadata == {"invoice_id": "018f", "payment_link": "https://x/ü"}


@pytest.mark.parametrize(
    ("constructor", "code"),
    [
        (errors.invalid, grpc.StatusCode.INVALID_ARGUMENT),
        (errors.not_found, grpc.StatusCode.NOT_FOUND),
        (errors.already_exists, grpc.StatusCode.ALREADY_EXISTS),
        (errors.precondition, grpc.StatusCode.FAILED_PRECONDITION),
        (errors.denied, grpc.StatusCode.PERMISSION_DENIED),
        (errors.unauthenticated, grpc.StatusCode.UNAUTHENTICATED),
        (errors.exhausted, grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.conflict, grpc.StatusCode.ABORTED),
        (errors.unavailable, grpc.StatusCode.UNAVAILABLE),
    ],
)
def test_each_constructor_has_its_status_code(constructor, code) -> None:  # type: ignore[no-untyped-def]
    refused = constructor("VALIDATION_ERROR", "no", field="amount")

    assert (refused.code, refused.reason, dict(refused.metadata)) == (
        code,
        "VALIDATION_ERROR",
        {"field": "amount"},
    )


def test_a_reason_that_no_document_knows_cannot_be_raised() -> None:
    with pytest.raises(ValueError, match="INVOICE_NOT_FUOND is not declared"):
        errors.not_found("INVOICE_NOT_FUOND", "there is none")


def test_the_reasons_kit_itself_uses_are_declared() -> None:
    declared = error_reason_pb2.ErrorReason.keys()

    assert errors.unexpected().reason in declared
    assert errors.database_unavailable().reason in declared
    assert errors.too_late().reason in declared


def test_each_unexpected_error_has_an_id_of_its_own() -> None:
    ids = {errors.unexpected().metadata["error_id"] for _ in range(50)}

    assert len(ids) == 50
    assert all(len(each) == 8 for each in ids)


def test_long_texts_are_cut_so_that_the_trailing_metadata_arrives() -> None:
    status = errors.refused_to_status(errors.invalid("VALIDATION_ERROR", "m" * 10_000, field="f" * 10_000))

    assert len(status.SerializeToString()) < 4096


def test_an_error_info_of_another_domain_is_not_ours() -> None:
    status = status_pb2.Status(code=5, message="elsewhere")
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(reason="INVOICE_NOT_FOUND", domain="googleapis.com")
    )

    assert errors.refused_from_status(status) is None


def test_a_refusal_reads_well_in_a_traceback() -> None:
    assert str(Refused("DB_UNAVAILABLE", "away")) == "DB_UNAVAILABLE: away"
