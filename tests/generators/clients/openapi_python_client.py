"""openapi-python-client."""

import os

from client import AuthenticatedClient
from client.api.invoices import create_invoice, get_invoice
from client.models import CreatedInvoice, CreateInvoice, ErrorAnswer, GetInvoiceResponse200, Refusal

ORDER = os.environ["ORDER"]
api = AuthenticatedClient(os.environ["URL"], os.environ["KEY"], prefix="", auth_header_name="X-Api-Key")


def create(currency: str) -> str:
    order = CreateInvoice(amount="100.50", currency_code=currency, customer_id=ORDER, external_id=ORDER)
    answer = create_invoice.sync(client=api, body=order)
    if isinstance(answer, CreatedInvoice):
        return answer.status
    assert isinstance(answer, ErrorAnswer | Refusal) and not isinstance(answer.error, str)
    return answer.error.code


def deal(ref: str) -> str:
    answer = get_invoice.sync(ref, client=api)
    assert isinstance(answer, GetInvoiceResponse200)
    return answer.data.deal.status if answer.data.deal else "null"


print(create("EUR"), deal(ORDER), deal(os.environ["CHOSEN"]), create("EUR"), create("XXX"))
