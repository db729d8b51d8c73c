"""The subjects of facts and hints are declared once, in protos/. A renamed one would lose facts in the stream."""

import pytest

from fiatgate.catalog.v1.catalog_pb2 import CatalogChanged, GetCatalogRequest
from fiatgate.invoices.v1.invoices_pb2 import InvoiceChanged, InvoiceFinished
from kit.events.subjects import durable_of, subject_of


def test_the_subjects_are_those_that_other_versions_use() -> None:
    assert subject_of(InvoiceFinished) == "fiatgate.invoices.finished"
    assert subject_of(InvoiceChanged) == "fiatgate-hint.invoice"
    assert subject_of(CatalogChanged) == "fiatgate-hint.catalog"


def test_the_consumers_have_the_names_that_jetstream_knows_them_by() -> None:
    assert durable_of(InvoiceFinished, "webhooks") == "webhooks-invoices-finished"
    assert durable_of(InvoiceFinished, "withdrawals") == "withdrawals-invoices-finished"


def test_a_message_without_a_subject_is_refused() -> None:
    with pytest.raises(ValueError, match="GetCatalogRequest declares no subject"):
        subject_of(GetCatalogRequest)
