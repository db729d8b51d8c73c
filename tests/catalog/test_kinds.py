"""A method has two properties of its transfers: whether they carry a reference, and the kind of its accounts."""

from typing import Any

from fiatgate.catalog.v1 import catalog_pb2 as pb
from tests.catalog.running import Catalog, merchant


def _set(catalog: Catalog, code: str, **options: Any) -> pb.PaymentMethod:
    catalog.method(code, f"method-of-{code}", **options)
    methods = catalog.stub.GetCatalog(pb.GetCatalogRequest()).methods
    return next(each for each in methods if each.method_code == f"method-of-{code}")


def test_a_method_takes_references_and_has_a_kind_of_accounts_until_others_are_given(
    catalog: Catalog,
) -> None:
    code = catalog.currency()
    new = _set(catalog, code)
    assert (new.takes_reference, new.account_kind) == (False, pb.ACCOUNT_KIND_FREE)
    changed = _set(catalog, code, takes_reference=True, account_kind=pb.ACCOUNT_KIND_IBAN)
    assert (changed.takes_reference, changed.account_kind) == (True, pb.ACCOUNT_KIND_IBAN)
    as_it_is = _set(catalog, code, name="Another name")
    assert (as_it_is.takes_reference, as_it_is.account_kind) == (True, pb.ACCOUNT_KIND_IBAN)
    catalog.set_rate(code, "2")
    assert catalog.quote(merchant(code), as_it_is.method_code).offer.method == as_it_is
    assert catalog.offers(merchant(code))[0].method == as_it_is
    assert not _set(catalog, code, takes_reference=False).takes_reference
