"""Sentences about a thing that was done, and about a refusal that the person can mend in the form."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from console.ui.values import ago
from kit.base.money import PER_CENT, amount_text, percent_of
from kit.rpc.errors import Refused, faults_of

NOTICES: Final[Mapping[str, str]] = {
    "signed-out": "You are signed out.",
    "invitation-accepted": "The invitation is accepted. Sign in as you always do to use the new roles. "
    "A passkey of another site does not work here; your password with a code does.",
    "passkey-added": "The passkey is added.",
    "passkey-removed": "The passkey is removed.",
    "password-set": "The password is set. Your other sessions have ended.",
    "totp-added": "The authenticator app is set up.",
    "totp-removed": "The authenticator app is removed.",
    "session-ended": "The session has ended.",
    "others-ended": "All your other sessions have ended.",
    "member-removed": "The person is no longer a member.",
    "roles-set": "The roles are set. They count from the next request.",
    "person-disabled": "The person is disabled, and all sessions have ended.",
    "self-disabled": "You are disabled, and all your sessions have ended. Another administrator can enable you.",
    "person-enabled": "The person may sign in again.",
    "invitation-withdrawn": "The invitation is revoked. Its link no longer works.",
    "invitation-sent": "The invitation is on its way by e-mail.",
    "deal-confirmed": "Confirmed: the merchant is credited.",
    "deal-rejected": "Rejected: the order has failed.",
    "deal-appealed": "In appeal: the deal waits without a limit of time.",
    "deals-rejected": "The deals are rejected.",
    "deals-appealed": "The deals are in appeal.",
    "case-decided": "Your answer is given to the operator.",
    "bank-line-refund": "The day’s end counts it so.",
    "case-opened": "The case is open. The merchant’s choice holds, or it is asked.",
    "case-answered": "The answer is given to the customer.",
    # approvals
    "approved": "Approved and done.",
    "request-rejected": "The request is rejected. Nothing was done.",
    "request-withdrawn": "Your request is taken back. Nothing was done.",
    # withdrawals
    "withdrawal-created": "The amount is reserved.",
    "withdrawal-processing": "It is being sent. When the transfer is made, give its transaction here.",
    "withdrawal-sent": "It is marked as sent.",
    "withdrawal-failed": "It is marked as failed. The amount is the merchant's again; a debt is paid first.",
    "withdrawal-canceled": "It is canceled. The amount is the merchant's again; a debt is paid first.",
    "withdrawal-canceled-here": "It is canceled. The amount is available again; a debt is paid first.",
    "withdrawal-requested": "The amount is held, and the operator is asked to send it.",
    "withdrawal-was-processing": "This form made this withdrawal before. It is being sent; nothing more was requested.",
    "withdrawal-was-sent": "This form made this withdrawal before. It was sent; nothing more was requested.",
    "withdrawal-was-failed": "This form made this withdrawal before. It failed, so nothing is held, and nothing "
    "more was requested.",
    "withdrawal-was-canceled": "This form made this withdrawal before. It is canceled, so nothing is held, and nothing "
    "more was requested.",
    "address-added": "The address is added. It can be used when its waiting time is over.",
    "address-added-usable": "The address is added. It can be used from now on.",
    "address-removed": "The address is removed: no withdrawal can be requested to it.",
    "bank-line-confirmed": "The deal is confirmed, paid by its line.",
    "bank-line-linked": "The line is linked to its deal.",
    "bank-lines-confirmed": "The deals are confirmed, each paid by its line.",
    "bank-line-ignored": "The line is ignored.",
    "line-rule-set": "The rule is changed.",
    "csv-save": "The profile is saved, and the file is imported by it.",
    "csv-import": "The file is imported by the profile.",
    "csv-profile-deleted": "The profile is deleted. Imports by it stay.",
    "bank-line-restored": "The line is looked at anew.",
    "refund-requested": "The refund is requested, and its USDT are held.",
    "return-requested": "It stands in the queue. Without an account it waits for the customer to give one.",
    "refund-canceled": "The refund is canceled. It holds nothing of the balance any more.",
    "refund-account-given": "The account is given: the operator can send the refund.",
    "refund-sent": "It is marked as sent. When the bank has paid it, say so here.",
    "refund-done": "The customer has the money back.",
    "refund-failed": "It is marked as failed. It holds nothing of the balance any more.",
    "withdrawal-method-set": "The withdrawal method is set. Withdrawals that exist keep their fee.",
    "correction-made": "The balance is corrected.",
    # webhooks
    "webhook-delivered": "Delivered: the merchant's server has accepted it.",
    "webhook-delivered-here": "Delivered: your server has accepted it.",
    "parked-retried": "The events were processed again.",
    "parked-stayed": "Some events failed again and stay here, with the reason.",
    "parked-discarded": "The event is discarded.",
    "several-done": "All that were ticked are done.",
    "recovery-sent": "The link to make new ways to sign in is on its way by e-mail.",
    # merchants
    "merchant-created": "The merchant is created.",
    "merchant-changed": "The settings are saved.",
    "merchant-unchanged": "Nothing was different, so nothing was changed.",
    "merchant-activated": "The merchant is active: its keys work from now on.",
    "merchant-banned": "The merchant is banned: all its calls are refused from now on.",
    "merchant-unbanned": "The ban has ended: the merchant has the state that it had before.",
    "owner-blocked": "The owner is blocked: all calls of all its merchants are refused from now on.",
    "owner-unblocked": "The block has ended: calls of the owner's merchants are served again.",
    "key-deactivated": "The key is deactivated: requests with it are refused from now on.",
    "key-revoked": "The key is revoked: posts with it are refused from now on.",
    "logo-used": "The logo is in use.",
    "logo-removed": "The logo is removed.",
    "category-set": "The terms of the category are set.",
    # invoices
    "invoice-canceled": "The invoice is canceled.",
    "link-canceled": "The link is canceled: it takes no money any more.",
    "many-link-canceled": "The link is canceled: it begins no payment any more.",
    "deals-on": "New invoices and new deals are accepted again.",
    "deals-off": "New invoices and new deals are refused. Open deals go on.",
    # prices
    "rates-pulled": "The sources were polled. A rate that moved too far is held.",
    "rate-set": "The rate is set. New deals lock it until it lapses.",
    "rate-accepted": "The rate is accepted. New deals lock it.",
    "currency-set": "The currency is saved.",
    "currency-created": "The currency is created. It needs a rate, and a method with an account.",
    "method-set": "The method is saved.",
    "method-created": "The method is created. It needs an account.",
    # requisites
    "requisite-added": "The account is added. New deals are opened on it.",
    "requisites-added": "The accounts are added. New deals are opened on them.",
    "requisites-enabled": "Enabled: new deals are opened there again.",
    "requisites-disabled": "Disabled: no new deals are opened there. Open ones go on.",
}
"""By the word in the address."""

_UNTIL_THE_END: Final = (
    "Until the operator ends that, no key, payment link, withdrawal or address for withdrawals can be made. You can "
    "read everything, deactivate keys, cancel withdrawals and remove addresses."
)

PROBLEMS: Final[Mapping[str, str]] = {
    "WEBHOOK_NOT_FOUND": "The invoice has no webhook.",
    "WEBHOOK_RESEND_COOLDOWN": "It was resent a moment ago. Wait a minute.",
    "WEBHOOK_RESEND_CONFLICT": "An attempt is under way. Wait for its end.",
    "SESSION_INVALID": "You were signed out: the session ended, was idle for too long, or your account changed. "
    "Nothing was changed.",
    "SIGN_IN_REFUSED": "That did not work. Check what you typed; a code can be used only once.",
    "SIGN_IN_DELAYED": "Too many wrong attempts. Wait a while before the next one.",
    "INVITATION_INVALID": "This link is not valid: it was used, revoked or has expired, or it is for another site. "
    "Ask for a new one.",
    "CODE_INVALID": "The code does not fit. Check the clock of your phone; a code that was used does not count again.",
    "PASSKEY_INVALID": "The passkey could not be added. Try again, or use another device.",
    "PASSWORD_REFUSED": "This password is not accepted: it is too short, too common, or like your e-mail address.",
    "LAST_FACTOR": "This is your last complete way to sign in. Add another one first.",
    "LAST_ADMIN": "This is the last active administrator. Make another one first.",
    "LAST_OWNER": "This is the merchant's last owner. Make another one first.",
    "APPROVAL_REQUIRED": "The request is recorded. It takes effect when another person approves it.",
    "MAIL_REQUIRED": "Members are invited by e-mail, and no e-mail can be sent from here. "
    "Ask the operator of the payment service to invite the person.",
    "INVITATIONS_LIMITED": "There are too many invitations. Withdraw one that is open, or go on tomorrow.",
    "APPROVAL_STATE_CONFLICT": "Another request about this waits already. Approve or reject it first.",
    "OTHER_PERSON_REQUIRED": "You requested this yourself: another person has to approve it.",
    "NO_DEALS": "No customer has chosen a way to pay yet: the bank has nothing to send.",
    "NOTHING_TICKED": "Nothing was ticked, so nothing was changed.",
    "WITHDRAWAL_STATE_CONFLICT": "The withdrawal is in another state by now. Nothing was changed.",
    "NOT_DECIDED": "This was made or changed in the database, past the service: no act decided it. Nothing was done. "
    "Have an administrator run fiatgate verify.",
    "BANK_LINE_LEFT": "It is done, but its bank line still waits. Open the line, and ignore it.",
    "REFUND_STATE_CONFLICT": "The refund is in another state by now. Nothing was changed.",
    "WITHDRAWAL_METHOD_NOT_FOUND": "This withdrawal method is switched off by now. Choose another one.",
    "WITHDRAWAL_ADDRESS_INVALID": "USDT can't be sent to this address on the method's network.",
    "WITHDRAWAL_AMOUNT_INVALID": "The amount is below the least or above the largest of the method.",
    "WITHDRAWAL_ADDRESS_NOT_FOUND": "This address is not in the book any more.",
    "WITHDRAWAL_ADDRESS_EXISTS": "This address is in the book already. To add it anew, remove it first.",
    "WITHDRAWAL_ADDRESS_WAITS": "The waiting time of this address is not over yet.",
    "API_KEYS_LIMITED": "There are as many active keys as a merchant may have. Deactivate one first.",
    "WITHDRAWAL_ADDRESSES_LIMITED": "There are too many addresses in the book, or too many were added today.",
    "MERCHANT_BLOCKED": f"Your account is banned. {_UNTIL_THE_END}",
    "OWNER_BLOCKED": f"The owner of your account is blocked. {_UNTIL_THE_END}",
    "INSUFFICIENT_BALANCE": "The merchant has less than this available.",
    "MERCHANT_NOT_FOUND": "You are not a member of this merchant.",
    "FACTOR_NOT_FOUND": "This was removed already.",
    "INVITATION_NOT_FOUND": "This invitation was used or revoked already.",
    "SESSION_NOT_FOUND": "This session has ended already.",
    "DEAL_STATE_CONFLICT": "Nothing was changed: the deal is no longer as you saw it. Its last step is below.",
    "DEAL_NOT_FOUND": "There is no such deal.",
    "ADJUSTMENT_INVALID": "The amount must be above zero and below the amount of the order.",
    "CASE_STATE_CONFLICT": "Nothing was changed: the case was answered already, as you see below.",
    "NO_DEALS_TICKED": "Tick the deals first.",
    # webhooks
    "WEBHOOK_REFUSED": "Sent, and the merchant's server did not accept it. Its answer is below.",
    "WEBHOOK_NOT_SENT": "It was not sent. The reason is below.",
    "WEBHOOK_REFUSED_HERE": "Sent, and your server did not accept it. Its answer is below.",
    # merchants
    "EDIT_CONFLICT": "Another person changed the same meanwhile. Look at it again.",
    "MERCHANT_STATE_CONFLICT": "The state of the merchant does not allow this: a banned one is unbanned first.",
    "MERCHANT_CATEGORY_NOT_FOUND": "This category does not exist any more. Choose another one.",
    "API_KEY_NOT_FOUND": "There is no such key.",
    # invoices
    "INVOICE_FINISHED": "The invoice has ended already, so nothing was changed.",
    "LINK_MARKED_PAID": "Your customer has said that it is paid, so nothing was changed. The operator checks it.",
    "INVOICE_MARKED_PAID": "The payment is marked as paid, so nothing was changed. Decide about the deal instead.",
    # prices and requisites
    "CURRENCY_NOT_FOUND": "There is no such currency.",
    "RATE_JUMPS": "The jump guard refused this rate: it is too far from the last one. Nothing was changed.",
    "RATE_NOT_HELD": "No rate waits for acceptance: the sources agree again, or another person decided.",
    "OTHER_RATE_HELD": "The sources were polled meanwhile, and another rate is held now. Nothing was changed.",
    "NONE_CHOSEN": "Nothing was chosen: tick the accounts first.",
}
"""By the reason of the refusal. A page for one topic may give a sentence of its own (`Page.show(problem=…)`)."""

NAMING: Final[Mapping[str, str]] = {
    "EDIT_CONFLICT": "Another person changed this meanwhile, to “{now}”. Save again to replace it.",
    # approvals
    "APPROVAL_STATE_CONFLICT": "The request is {state} already, by {decided_by}, {decided_at_ago} ago. "
    "Nothing was changed.",
    # withdrawals
    "INSUFFICIENT_BALANCE": "{available} USDT are available, {requested} are requested.",
    # deals
    "ADJUSTMENT_INVALID": "{amount} is not an underpayment: the amount must be above zero and below {original_amount}.",
    "WITHDRAWAL_ADDRESS_INVALID": "USDT can't be sent to this address on {network}.",
}
"""Sentences with facts of the refusal's metadata, as {decided_by}: in place of those above when it has them all. Of a
time, which is ISO 8601, {decided_at_ago} is the age.
"""


FIELDS: Final[Mapping[str, str]] = {
    "email": "E-mail address",
    "name": "Name",
    "roles": "Roles",
    "member_roles": "Roles",
    "password": "Password",
    "code": "Code",
    "since": "From day",
    "until": "To day",
    # withdrawals
    "merchant_id": "Merchant",
    "withdrawal_method_id": "Method",
    "address": "Address",
    "address_memo": "Memo",
    "amount": "Amount",
    "network_fee": "Fee",
    # refunds
    "refund_amount": "Amount",
    "account_kind": "Kind of account",
    # payment links
    "customer_id": "Customer",
    "external_id": "Order",
    "purpose": "Purpose",
    # merchants
    "owner_email": "Owner's e-mail address",
    "category_code": "Category",
    "client_share": "Customer's part of the commission",
    "callback_url": "Webhooks",
    "success_url": "After success",
    "fail_url": "After failure",
    "allowed_currencies": "Currencies",
    "allowed_methods": "Payment methods",
    "colour": "Colour",
    "frame_origins": "Sites that may show the page in a frame",
    "logo": "Picture",
    "late_money": "Money that comes late",
    "ended_as": "What was done with the money",
    "answer": "Your answer",
    "text": "Words for the operator",
    "commission": "Commission",
    "symbol": "Symbol",
    "decimals": "Decimals",
    "min_amount": "Least amount",
    "max_amount": "Largest amount",
    "markup": "Markup",
    "min_sum": "Least amount",
    "max_sum": "Largest amount",
    "payment_minutes": "Minutes to pay",
    "logo_url": "Address of the logo",
    "network": "Network",
    # prices and requisites
    "currency_code": "Currency",
    "rate": "Rate",
    "account": "Account",
    "holder": "Holder",
    "bank": "Bank",
    # deals
    "received_amount": "Amount that came",
    "adjusted_amount": "Part of the order",
    # corrections and refunds
    "bank_reference": "Bank's reference",
    "failure": "Reason",
    "conversion_rate": "Rate",
    "evidence": "Evidence",
    "reason": "Reason",
    "max_deals": "Most open deals",
    "method_code": "Method",
    "list": "Accounts",
    "requisites": "Accounts",
    "accounts": "Accounts",
    "silence_seconds": "Silent after",
    "deal_most": "Most a deal",
    "day_most": "Most a day",
}
"""Fields of requests, as the forms name them."""


_PERCENTS: Final = frozenset({"client_share", "commission", "markup"})
"""Fractions of the services, and per cent of the forms."""
_SAID_BY_SERVICES: Final = frozenset(
    {"PASSWORD_REFUSED", "INVITATIONS_LIMITED", "CORRECTION_INVALID", "REFUND_INVALID", "BANK_LINE_CONFLICT"}
)
"""Reasons whose message is the sentence."""
_AMOUNTS: Final = frozenset({"available", "requested", "amount", "original_amount"})


def sentence_for(reason: str, refused: Refused | None = None) -> str | None:
    """Returns the sentence for a reason; None when the reason has none, and so is a page of its own."""
    if reason == "VALIDATION_ERROR" and refused is not None:
        faults = faults_of(refused) or {"": refused.message}
        return " ".join(_sentence_about(field, message.rstrip(".")) for field, message in faults.items())
    if reason in _SAID_BY_SERVICES and refused is not None and refused.message:
        return f"{refused.message}."
    sentence = PROBLEMS.get(reason)
    if refused is None:
        return sentence
    if named := _named(reason, refused.metadata):
        return named
    if sentence is None:
        return sentence
    if reason == "SIGN_IN_DELAYED" and (seconds := refused.metadata.get("retry_after_seconds")):
        unit = "second" if seconds == "1" else "seconds"
        return f"Too many wrong attempts. The next one counts in {seconds} {unit}."
    return sentence


def _named(reason: str, metadata: Mapping[str, str]) -> str | None:
    """Returns the sentence with the facts of the refusal; None when there is none, or a fact is missing."""
    facts = {name: amount_text(value) if name in _AMOUNTS else value for name, value in metadata.items()}
    if metadata.get("field") in _PERCENTS:
        facts["now"] = f"{percent_of(metadata.get('now', ''))} %"
    for name, value in metadata.items():
        if name.endswith("_at"):
            try:
                facts[f"{name}_ago"] = ago(datetime.fromisoformat(value))
            except ValueError:
                continue
    try:
        return NAMING[reason].format_map(facts)
    except KeyError:
        return None


VALID: Final = {"hour": "1 h", "day": "24 h", "until_replaced": "until replaced"}
"""How long a rate that is set by hand counts: the words of the form."""


def errors_of(refused: Refused | None) -> dict[str, str]:
    """Returns the sentence about each field that was refused, by the last part of its name."""
    if refused is None:
        return {}
    is_value, whole = refused.reason == "VALIDATION_ERROR", sentence_for(refused.reason, refused) or ""
    return {
        field.rpartition(".")[2]: _sentence_about(field, message.rstrip(".")) if is_value else whole
        for field, message in faults_of(refused).items()
    }


def _sentence_about(field: str, message: str) -> str:
    """Returns the message with the name that the form gives the field."""
    name = field.rpartition(".")[2]
    label = FIELDS.get(name, "")
    if name in _PERCENTS:
        message = PER_CENT
    if not label:
        return f"{message[:1].upper()}{message[1:]}."
    if message.casefold().startswith(f"{name} "):  # "password has at most 256 characters"
        return f"{label}{message[len(name) :]}."
    message = message.removeprefix(f"{field}: ")
    return f"{label}: {message[:1].lower()}{message[1:]}."
