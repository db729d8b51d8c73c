"""A case and a deal for people: groups of facts, in each the facts first that an operator compares.

An id stands in the group of the thing that has it. Fields for programs, such as URLs, are in the output of --json only.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from cli import output
from console.words.deals import step_words
from kit.base.codes import in_groups
from kit.base.money import money_text

Values = Mapping[str, Any]
_OF_DEAL: Final = (
    *("amount to send", "reference", "sender_name", "status", "sub_status"),
    *("payment_method", "marked paid at"),
)
_OF_REQUISITE: Final = ("account", "holder", "bank")
_OF_INVOICE: Final = ("external_id", "customer_id", "amount", "status")
_NOT_OF_REQUISITE: Final = frozenset({"method_code", "max_deals", "open_deals", "enabled", "created_at"})
_NOT_OF_INVOICE: Final = frozenset(
    {"amount", "currency_code", "deal", "callback_url", "success_url", "fail_url", "key_id"}
)
_ELSEWHERE: Final = frozenset({"invoice_id", "merchant_id", "requisite_id", "invoice_amount"})


def print_case(answer: Values) -> None:
    """Prints the fields of a GetCaseResponse."""
    case, invoice = answer["case"], answer["invoice"]
    facts = {"number": case["number"], "customer's text": case["note"] or "none"} | _left(
        case, {"note", "deal_id"} | _ELSEWHERE
    )
    proof = answer["proof"]
    facts["picture"] = f"{proof['content_type']}, {proof['size']} bytes" if proof else "none"
    output.groups(
        {
            "Case": facts,
            "Deal": _deal(invoice["deal"]) if invoice["deal"] else {},
            "Requisite": _requisite(answer["requisite"]),
            "Invoice": _invoice(invoice),
        }
    )


def print_deal(answer: Values, invoice: Values) -> None:
    """Prints the fields of a GetDealResponse, and those of the deal's Invoice."""
    texts = [step["note"] for step in answer["history"] if step["actor"] == "customer" and step["note"]]
    facts = _deal(answer["deal"])
    output.groups(
        {
            "Deal": {"customer's text": texts[-1]} | facts if texts else facts,
            "Requisite": _requisite(answer["requisite"]),
            "Invoice": _invoice(invoice),
            "History": [_step(step) for step in answer["history"]],
            "Pictures": [_left(proof, {"deal_id"}) for proof in answer["proofs"]],
        }
    )


def _step(step: Values) -> dict[str, Any]:
    return {
        "at": step["at"],
        "step": step_words(step["sub_status"]),
        "by": step["actor"],
        "note": step["note"],
    }


def _deal(deal: Values) -> dict[str, Any]:
    made = {
        "amount to send": money_text(deal["amount_to_send"] or deal["amount_fiat"], deal["currency_code"]),
        "payment_method": f"{deal['payment_method_code']}, {deal['payment_method_name']}",
        "marked paid at": deal["mark_paid_at"],
        "reference": in_groups(deal["reference"]),
    }
    renamed = {
        "amount_fiat",
        "amount_to_send",
        "currency_code",
        "payment_method_code",
        "payment_method_name",
        "mark_paid_at",
    }
    renamed.add("reference")
    return _first(_OF_DEAL, made | _left(deal, renamed | _ELSEWHERE))


def _requisite(requisite: Values) -> dict[str, Any]:
    return _first(_OF_REQUISITE, _left(requisite, _NOT_OF_REQUISITE))


def _invoice(invoice: Values) -> dict[str, Any]:
    amount = {"amount": money_text(invoice["amount"], invoice["currency_code"])}
    return _first(_OF_INVOICE, amount | _left(invoice, _NOT_OF_INVOICE))


def _first(names: Sequence[str], values: Values) -> dict[str, Any]:
    return {name: values[name] for name in (*names, *(name for name in values if name not in names))}


def _left(values: Values, without: AbstractSet[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in without}
