"""Two operators who edit one currency or method: each changes what it changed, and nothing of the other is undone."""

from typing import Any

from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.db.books import check_page, is_key
from services.catalog.store.books import PARTS
from tests.catalog.running import Catalog
from tests.support.acting import refusal


def currency_of(catalog: Catalog, code: str) -> pb.Currency:
    listed = catalog.stub.GetCatalog(pb.GetCatalogRequest()).currencies
    return next(each for each in listed if each.code == code)


def method_of(catalog: Catalog, code: str) -> pb.PaymentMethod:
    listed = catalog.stub.GetCatalog(pb.GetCatalogRequest()).methods
    return next(each for each in listed if each.method_code == code)


def with_changes(seen: Any, **changes: Any) -> Any:
    changed = type(seen)()
    changed.CopyFrom(seen)
    changed.MergeFrom(type(seen)(**changes))
    return changed


def edit(catalog: Catalog, seen: Any, **changes: Any) -> Any:
    """Sends the edit of an operator who saw `seen`."""
    wanted = with_changes(seen, **changes)
    if isinstance(seen, pb.Currency):
        return catalog.stub.SetCurrency(pb.SetCurrencyRequest(currency=wanted, was=seen)).currency
    return catalog.stub.SetPaymentMethod(pb.SetPaymentMethodRequest(method=wanted, was=seen)).method


def refused(catalog: Catalog, seen: Any, **changes: Any) -> dict[str, str]:
    refused = refusal(edit, catalog, seen, **changes)
    assert refused.reason == "EDIT_CONFLICT"
    return dict(refused.metadata)


def test_edits_of_different_fields_both_count(catalog: Catalog) -> None:
    code = catalog.currency()
    seen = currency_of(catalog, code)
    edit(catalog, seen, markup="0.03")
    edit(catalog, seen, max_amount="500")
    now = currency_of(catalog, code)
    assert (now.markup, now.max_amount, now.name) == ("0.03", "500.00", seen.name)

    method = method_of(catalog, catalog.method(code))
    edit(catalog, method, commission="0.01")
    edit(catalog, method, takes_reference=True, name="Card")
    after = method_of(catalog, method.method_code)
    assert (after.commission, after.takes_reference, after.name) == ("0.01", True, "Card")


def test_an_edit_of_a_field_that_another_changed_names_the_field_and_its_value_now(catalog: Catalog) -> None:
    code = catalog.currency()
    seen = currency_of(catalog, code)
    edit(catalog, seen, name="Krone")
    assert refused(catalog, seen, name="Corona") == {"field": "currency.name", "now": "Krone"}
    assert currency_of(catalog, code).name == "Krone"
    assert edit(catalog, seen, name="Krone").name == "Krone", "the same change twice is no conflict"


def test_edits_that_are_right_alone_and_wrong_together_are_refused(catalog: Catalog) -> None:
    code = catalog.currency()
    seen, method = currency_of(catalog, code), method_of(catalog, catalog.method(code))
    edit(catalog, seen, min_amount="100")
    assert refused(catalog, seen, max_amount="50")["field"] == "currency.max_amount"
    edit(catalog, method, min_sum="100")
    assert refused(catalog, method, max_sum="50")["field"] == "method.max_sum"


def test_a_thing_to_create_must_be_new_and_one_to_edit_must_be_there(catalog: Catalog) -> None:
    code = catalog.currency()
    seen, method = currency_of(catalog, code), method_of(catalog, catalog.method(code))
    for call in (
        lambda: catalog.stub.SetCurrency(pb.SetCurrencyRequest(currency=seen, create=True)),
        lambda: catalog.stub.SetPaymentMethod(pb.SetPaymentMethodRequest(method=method, create=True)),
    ):
        assert refusal(call).reason == "EDIT_CONFLICT"
    gone = with_changes(seen, code=catalog.new_code())
    assert refused(catalog, gone) == {"field": "currency.code", "now": ""}
    made = with_changes(seen, code=catalog.new_code())
    catalog.stub.SetCurrency(pb.SetCurrencyRequest(currency=made, create=True))
    assert currency_of(catalog, made.code) == made


def test_an_edit_does_not_bless_what_sql_wrote_into_another_field(catalog: Catalog) -> None:
    """Also when the form had the value that SQL wrote, and sent it back."""
    currency = currency_of(catalog, catalog.currency())
    method = method_of(catalog, catalog.method(currency.code))
    catalog.execute("UPDATE payment_methods SET commission = 0 WHERE code = %s", method.method_code)
    catalog.execute("UPDATE currencies SET markup = 0.5 WHERE code = %s", currency.code)
    edit(catalog, method_of(catalog, method.method_code), name="Bank 2")
    edit(catalog, currency, max_amount="500")
    named = {
        (each.subject, each.field)
        for part in PARTS
        for each in check_page(catalog.deps.db, part, after="", limit=1000).problems
    }
    assert named >= {
        (f"payment method {method.method_code}", "commission"),
        (f"currency {currency.code}", "markup"),
    }


def test_a_row_with_a_long_key_ends_no_verification(catalog: Catalog) -> None:
    catalog.execute(
        "INSERT INTO payment_methods (code, currency_code, name, min_sum, max_sum, payment_minutes, commission, active,"
        " takes_reference, account_kind) SELECT repeat('A', 500) || n, %s, 'x', 1, 2, 15, 0, false, false, 'free'"
        " FROM generate_series(1, 1000) n",
        catalog.currency(),
    )
    (part,) = (each for each in PARTS if each.table == "payment_methods")
    page = check_page(catalog.deps.db, part, after="", limit=1000)
    assert page.more
    assert is_key(part, page.last), "CheckPage refuses the next page"
