"""The words with a special meaning in the API, for the page at /docs.

docs/glossary.md has them with the words of operators and developers; tests/test_glossary.py compares the two.
"""

from collections.abc import Mapping
from typing import Final

WORDS: Final[Mapping[str, str]] = {
    "adjustment": "The lowering of a deal's amount when an operator resolves an appeal. It happens at most once per "
    "deal. The webhook's `amount` is the final one.",
    "appeal": "The state of a deal that an operator has to decide: the customer or an operator opened it, or no "
    "operator confirmed the deal in time.",
    "attempt": "One delivery of a webhook event to the merchant's server, automatic or by a resend.",
    "callback URL": "The address on the merchant's server that Fiatgate sends an invoice's webhook to.",
    "category": "A group of merchants with the same commission.",
    "commission": "The percentage that a payment costs: that of the merchant's category plus that of the payment "
    "method. The customer pays one part of it and the merchant the rest.",
    "customer": "The person who pays an invoice. The merchant chooses the `customer_id`.",
    "deal": "The payment under an invoice, with a payment method, a locked rate, an exact amount and a requisite. "
    "It begins when the customer chooses a method; choosing another method begins another deal.",
    "invoice": "A merchant's request for one payment: an amount in a fiat currency for one customer and one order.",
    "merchant": "An account that accepts payments. API keys, invoices and balances belong to a merchant.",
    "operator": "A person who runs the installation: confirms deals, decides appeals and pays withdrawals.",
    "owner": "The person or company that merchants belong to. Blocking an owner blocks all their merchants.",
    "payment link": "The address of the page on which a customer pays an invoice; or one that makes an invoice for "
    "each payment.",
    "payment method": "A way to pay in one currency, with bounds of the amount, a time to pay and a commission.",
    "rate": "The price of one USDT in a fiat currency. A deal locks the rate of the moment of its creation.",
    "requisite": "The account that a customer sends the money to: a holder, an account number and often a bank.",
    "resend": "An attempt that a merchant or an operator asks for. When it succeeds it ends the automatic retries; "
    "when it fails it changes nothing.",
    "settlement": "The crediting of a merchant's USDT balance for a successful invoice.",
    "signing secret": "The key of the signature on webhooks. It belongs to an API key and is shown once, with it.",
    "webhook event": "The one notification that Fiatgate makes when an invoice ends, with all attempts to deliver it.",
    "withdrawal": "A payment of USDT from a merchant's balance to a wallet. Its fee is taken from its amount.",
}
