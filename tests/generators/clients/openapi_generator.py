"""openapi-generator, python."""

import os

from openapi_client import ApiClient, ApiException, Configuration, CreateInvoice, InvoicesApi

ORDER = os.environ["ORDER"]
api = InvoicesApi(ApiClient(Configuration(host=os.environ["URL"], api_key={"ApiKey": os.environ["KEY"]})))


def order(currency: str) -> CreateInvoice:
    return CreateInvoice(amount="100.50", currency_code=currency, customer_id=ORDER, external_id=ORDER)


def refused(currency: str) -> str:
    try:
        return api.create_invoice(order(currency)).status
    except ApiException as error:
        body = error.data.error
        return body.actual_instance.code if error.status == 422 else body.code


status = api.create_invoice(order("EUR")).status
deal = api.get_invoice(ORDER).data.deal
chosen = api.get_invoice(os.environ["CHOSEN"]).data.deal
print(status, "deal" if deal else "null", chosen.status, refused("EUR"), refused("XXX"))
