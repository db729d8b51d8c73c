"""What someone does who has the address of one service's database, and what comes of it.

Each attack is SQL under the service's own role, or by the owner of the database with triggers off. `%(name)s` is a
thing of `tests/security/shop.py`. `python -m tests.security.attacks` writes the table of docs/security.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from kit.base.services import SERVICES


class Outcome(Enum):
    REFUSED = "refused"
    FOUND = "found"
    NOT_PROMISED = "not promised"


@dataclass(frozen=True)
class Attack:
    """One attack. `names` are words of one problem, or of one line of `could not read`, for an attack that is found."""

    what: str
    service: str
    sql: str
    outcome: Outcome
    names: tuple[str, ...] = ()
    by_owner: bool = False


def refused(service: str, what: str, sql: str) -> Attack:
    return Attack(what, service, sql, Outcome.REFUSED)


def found(service: str, what: str, sql: str, *names: str) -> Attack:
    return Attack(what, service, sql, Outcome.FOUND, names)


def found_of_owner(service: str, what: str, sql: str, *names: str) -> Attack:
    return Attack(what, service, sql, Outcome.FOUND, names, by_owner=True)


def not_promised(service: str, what: str, sql: str) -> Attack:
    return Attack(what, service, sql, Outcome.NOT_PROMISED)


_INVITATION = (
    "INSERT INTO invitations (id, token_hash, email, name, roles, invited_by, by_operator, created_at, expires_at)"
    " VALUES ({id}, sha256('{token}'), {email}, 'Eve', '{{admin}}', 'someone', true, now(), now() + interval '1 day')"
)
_ACT = (
    "INSERT INTO acts (id, at, actor_kind, actor_name, surface, on_behalf_of, act, object, changes, note, request_id,"
    " refused, seal) VALUES (%(forged_act)s, now(), 'person', 'ann@example.com', 'desk', '', '{act}', '{object}',"
    " '{changes}', '', '', '', decode(repeat('ab', 32), 'hex'))"
)
_RATE = (
    "INSERT INTO rates (currency_code, source_rate, origin, taken_at, document, seal)"
    " VALUES ('{currency}', {rate}, '{origin}', now(), '{document}', decode(repeat('ab', 32), 'hex'))"
)
_NO_QUOTES, _WRONG_QUOTES = '{"quotes": []}', '{"quotes": 5}'
_DEAL = (
    "INSERT INTO deals (id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code,"
    " currency_decimals, invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent, requisite_id,"
    " created_at, expires_at, seal, reference, takes_reference)"
    " SELECT %(forged_deal)s, %(waiting)s, merchant_id, 'pending', 'awaiting_payment', method_code, method_name,"
    " currency_code, {decimals}, (SELECT amount FROM invoices WHERE id = %(waiting)s), amount_fiat, {rate},"
    " client_percent, merchant_percent, requisite_id, now(), now() + interval '1 hour', seal, '7K3M9QTX', true"
    " FROM deals WHERE id = %(sold_deal)s"
)

_ACCOUNTS: Final = (
    found(
        "accounts",
        "a link to become an administrator",
        _INVITATION.format(id="%(forged_link)s", token="of eve", email="'eve@example.com'"),
        "invitation",
        "%(forged_link)s",
        "act is none",
    ),
    found(
        "accounts",
        "a recovery link of an administrator",
        _INVITATION.format(id="%(forged_recovery)s", token="recovery.eve", email="%(admin_email)s"),
        "%(forged_recovery)s",
        "act is none",
    ),
    found(
        "accounts",
        "a role",
        "UPDATE people SET roles = '{viewer,admin}' WHERE id = %(viewer)s",
        "%(viewer)s",
        "roles is viewer, admin",
    ),
    found(
        "accounts",
        "an owner of a merchant",
        "INSERT INTO memberships VALUES (%(viewer)s, %(merchant)s, '{owner}', now())",
        "%(viewer)s",
        "roles at merchant",
    ),
    found(
        "accounts",
        "a disabled person enabled",
        "UPDATE people SET disabled_at = NULL WHERE id = %(disabled)s",
        "%(disabled)s",
        "state is enabled",
    ),
    found(
        "accounts",
        "a password",
        "UPDATE people SET password_hash = 'one of my own' WHERE id = %(admin)s",
        "%(admin)s",
        "password",
    ),
    found(
        "accounts",
        "a passkey",
        "INSERT INTO passkeys (id, person_id, rp_id, credential_id, credential, sign_count, name, created_at, seal)"
        " VALUES (%(forged_passkey)s, %(admin)s, 'localhost', 'mine', 'mine', 0, 'mine', now(),"
        " decode(repeat('ab', 32), 'hex'))",
        "%(forged_passkey)s",
        "passkey",
    ),
    found(
        "accounts",
        "a session",
        "INSERT INTO sessions (id, person_id, token_hash, surface, way, address, user_agent, started_at, last_seen_at,"
        " seal) VALUES (%(forged_session)s, %(admin)s, sha256('mine'), 'desk', 'passkey', '', '', now(), now(),"
        " decode(repeat('ab', 32), 'hex'))",
        "%(forged_session)s",
        "session",
    ),
    found(
        "accounts",
        "another person's session with a token of one's own",
        "UPDATE sessions SET token_hash = sha256('my own') WHERE person_id = %(admin)s AND way = 'invitation'",
        "%(admin_session)s",
        "written past the service",
    ),
    found(
        "accounts",
        "a key that signs for every person",
        "INSERT INTO signing_keys (id, public_key, sealed_private_key, created_at, seal)"
        " SELECT %(forged_key)s, sha256('mine'), sealed_private_key, now(), seal FROM signing_keys LIMIT 1",
        "%(forged_key)s",
        "written past the service",
    ),
    found(
        "accounts",
        "an act in another's name",
        _ACT.format(
            act="person.roles",
            object="person:x",
            changes='[["roles", "viewer", "viewer, admin"]]',
        ),
        "%(forged_act)s",
        "no process of the service wrote it",
    ),
    found(
        "accounts",
        "a head of another service's chain",
        "INSERT INTO act_heads (service, count, hash, at, seal) VALUES ('catalog', 9, decode(repeat('ab', 32), 'hex'),"
        " now(), decode(repeat('ab', 32), 'hex'))",
        "head of catalog",
        "added by hand",
    ),
    found(
        "accounts",
        "a request for a second person that nobody made",
        "INSERT INTO approvals (id, act, object, summary, request, requested_by, requested_as, requested_at, note)"
        " VALUES (%(forged_request)s, 'person.roles', 'person:x', 'Harmless', '{}', 'eve@example.com',"
        " 'eve@example.com', now(), '')",
        "%(forged_request)s",
        "act is none",
    ),
    refused("accounts", "an act changed", "UPDATE acts SET note = 'x'"),
    refused("accounts", "an act deleted", "DELETE FROM acts"),
    refused("accounts", "the chain cut", "DELETE FROM act_chain"),
    refused("accounts", "kept heads deleted", "DELETE FROM act_heads"),
    refused(
        "accounts",
        "an act whose changes are no list",
        _ACT.format(act="person.roles", object="person:x", changes="{}"),
    ),
    refused(
        "accounts",
        "an act of 500 lists in each other",
        _ACT.format(act="person.roles", object="person:x", changes="[" * 500 + "]" * 500),
    ),
    refused(
        "accounts", "a person's address", "UPDATE people SET email = 'eve@example.com' WHERE id = %(admin)s"
    ),
    refused("accounts", "a person deleted", "DELETE FROM people WHERE id = %(viewer)s"),
    refused(
        "accounts",
        "a request approved as it is made",
        "INSERT INTO approvals (id, act, object, summary, request, requested_by, requested_as, requested_at, note,"
        " state, decided_by, decided_as, decided_at) VALUES (gen_random_uuid(), 'x', 'x', 'x', '{}', 'a', 'a', now(),"
        " '', 'approved', 'b', 'b', now())",
    ),
    not_promised(
        "accounts",
        "the time of a step-up",
        "UPDATE sessions SET stepped_up_at = now() WHERE person_id = %(viewer)s",
    ),
    not_promised("accounts", "a person's name", "UPDATE people SET name = 'Eve' WHERE id = %(viewer)s"),
    not_promised("accounts", "counters of guesses", "DELETE FROM guesses"),
)

_CATALOG: Final = (
    found(
        "catalog",
        "a rate in an operator's name",
        _RATE.format(currency="JPY", rate="1", origin="operator", document=_NO_QUOTES),
        "JPY rate",
        "one that catalog put in force",
    ),
    found(
        "catalog",
        "a rate with invented sources",
        _RATE.format(
            currency="TRY",
            rate="7",
            origin="sources",
            document='{"quotes": [{"source": "bank", "rate": "7", "error": ""}]}',
        ),
        "TRY rate",
        "one that catalog put in force",
    ),
    found(
        "catalog",
        "a markup",
        "UPDATE currencies SET markup = 0.5 WHERE code = 'INR'",
        "currency INR",
        "markup is 0.5",
    ),
    found(
        "catalog",
        "a largest amount",
        "UPDATE currencies SET max_amount = 99999999 WHERE code = 'KZT'",
        "currency KZT",
        "max_amount is 99999999",
    ),
    found(
        "catalog",
        "a commission",
        "UPDATE payment_methods SET commission = 0 WHERE code = 'upi'",
        "payment method upi",
        "commission is 0",
    ),
    found(
        "catalog",
        "a currency",
        "INSERT INTO currencies VALUES ('XXX', 'X', 'X', 2, 1, 2, 0, true)",
        "currency XXX",
        "act is none",
    ),
    refused(
        "catalog",
        "a rate without sources",
        _RATE.format(currency="EUR", rate="1", origin="sources", document=_WRONG_QUOTES),
    ),
    refused(
        "catalog",
        "a rate that is no number",
        _RATE.format(currency="EUR", rate="'NaN'", origin="sources", document=_NO_QUOTES),
    ),
    refused("catalog", "a rate changed", "UPDATE rates SET source_rate = 1"),
    refused("catalog", "rates deleted", "DELETE FROM rates"),
    refused("catalog", "200,000 decimals", "UPDATE currencies SET decimals = 20000 WHERE code = 'EUR'"),
    refused(
        "catalog",
        "an amount that is no number",
        "UPDATE currencies SET max_amount = 'NaN' WHERE code = 'EUR'",
    ),
    refused("catalog", "a currency deleted", "DELETE FROM currencies WHERE code = 'EUR'"),
    not_promised("catalog", "the turn of the poller", "UPDATE poll_turns SET started_at = now()"),
)

_MERCHANTS: Final = (
    found(
        "merchants",
        "where webhooks go",
        "UPDATE merchants SET callback_url = 'https://evil.example/' WHERE id = %(merchant)s",
        "%(merchant)s",
        "callback_url is https://evil.example/",
    ),
    found(
        "merchants",
        "who pays the commission",
        "UPDATE merchants SET client_share = 1 WHERE id = %(merchant)s",
        "%(merchant)s",
        "client_share is 1",
    ),
    found(
        "merchants",
        "a ban taken back",
        "UPDATE merchants SET banned_at = NULL WHERE id = %(banned)s",
        "%(banned)s",
        "banned_at is nothing",
    ),
    found(
        "merchants",
        "a block taken back",
        "UPDATE owners SET blocked_at = NULL WHERE email = %(blocked_owner)s",
        "%(blocked_owner)s",
        "blocked_at is nothing",
    ),
    found(
        "merchants",
        "a category's commission",
        "UPDATE categories SET commission = 0.000001 WHERE code = 'standard'",
        "category standard",
        "commission is 0.000001",
    ),
    found(
        "merchants",
        "a deactivated key active again",
        "UPDATE api_keys SET deactivated_at = NULL WHERE id = %(dead_key)s",
        "%(dead_key)s",
        "deactivated_at is nothing",
    ),
    found(
        "merchants",
        "a key",
        "INSERT INTO api_keys (id, merchant_id, name, hint, key_hash, sealed_secret, created_at)"
        " SELECT %(forged_api_key)s, %(merchant)s, '', 'fg_eve', sha256('eve'), sealed_secret, now() FROM api_keys"
        " LIMIT 1",
        "%(forged_api_key)s",
        "act is none",
    ),
    refused("merchants", "a key given to another merchant", "UPDATE api_keys SET merchant_id = %(banned)s"),
    refused("merchants", "another hash of a key", "UPDATE api_keys SET key_hash = sha256('mine')"),
    refused("merchants", "a merchant deleted", "DELETE FROM merchants WHERE id = %(merchant)s"),
    refused("merchants", "a share that is no number", "UPDATE merchants SET client_share = 'NaN'"),
    not_promised(
        "merchants",
        "the time of a key's last use",
        "UPDATE api_keys SET last_used_at = now() WHERE id = %(dead_key)s",
    ),
    not_promised(
        "merchants", "a merchant's colour", "UPDATE merchants SET colour = '#000000' WHERE id = %(banned)s"
    ),
)

_INVOICES: Final = (
    found(
        "invoices",
        "a deal with a rate of one's own",
        _DEAL.format(decimals="currency_decimals", rate="0.01"),
        "%(forged_deal)s",
        "terms",
    ),
    found(
        "invoices",
        "an open deal completed",
        "UPDATE deals SET status = 'completed', sub_status = 'successfully_paid', merchant_usdt = 5,"
        " finished_at = now() WHERE id = %(open_deal)s",
        "%(open_deal)s",
        "act is none",
    ),
    found(
        "invoices",
        "the amount that a customer is asked for",
        "UPDATE deals SET amount_fiat = 1 WHERE id = %(asked_deal)s",
        "%(asked_deal)s",
        "amount_fiat is 1",
    ),
    found(
        "invoices",
        "an invoice that waits a success",
        "UPDATE invoices SET status = 'success', finished_at = now(), event_id = gen_random_uuid()"
        " WHERE id = %(waiting)s",
        "%(waiting)s",
        "it has no signed fact",
    ),
    found(
        "invoices",
        "an account to pay to",
        "INSERT INTO requisites (id, method_code, holder, account, max_deals, open_deals, enabled, created_at)"
        " VALUES (%(forged_account)s, 'sepa', 'Eve', 'GB33BUKB20201555555555', 5, 0, true, now())",
        "%(forged_account)s",
        "act is none",
    ),
    found(
        "invoices",
        "a disabled account in use again",
        "UPDATE requisites SET enabled = true WHERE id = %(disabled_account)s",
        "%(disabled_account)s",
        "enabled is yes",
    ),
    found(
        "invoices",
        "the places of an account",
        "UPDATE requisites SET max_deals = 999 WHERE id = %(disabled_account)s",
        "%(disabled_account)s",
        "max_deals is 999",
    ),
    found(
        "invoices",
        "the switch for new deals",
        "INSERT INTO switches VALUES ('deals', false, now(), 'eve') ON CONFLICT (name) DO UPDATE SET enabled = false",
        "switch deals",
    ),
    refused("invoices", "an account's number", "UPDATE requisites SET account = 'GB33BUKB20201555555555'"),
    refused("invoices", "a deal's rate", "UPDATE deals SET conversion_rate = 0.1"),
    refused("invoices", "a deal's commission", "UPDATE deals SET merchant_percent = 0"),
    refused("invoices", "a deal's account", "UPDATE deals SET requisite_id = %(disabled_account)s"),
    refused("invoices", "an invoice's amount", "UPDATE invoices SET amount = 1"),
    refused("invoices", "an invoice's merchant", "UPDATE invoices SET merchant_id = %(banned)s"),
    refused(
        "invoices",
        "a finished deal changed",
        "UPDATE deals SET merchant_usdt = 3000 WHERE id = %(sold_deal)s",
    ),
    refused("invoices", "a deal deleted", "DELETE FROM deals WHERE id = %(open_deal)s"),
    refused("invoices", "a signed fact deleted", "DELETE FROM facts"),
    refused("invoices", "a deal of 200,000 decimals", _DEAL.format(decimals="200000", rate="1")),
    refused(
        "invoices",
        "a credit that is no number",
        "UPDATE deals SET merchant_usdt = 'NaN' WHERE id = %(asked_deal)s",
    ),
    not_promised(
        "invoices",
        "a sender's name",
        "UPDATE deals SET sender_name = 'Eve', sender_words = 'eve' WHERE id = %(asked_deal)s",
    ),
    not_promised(
        "invoices",
        "a step in a deal's history",
        "INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)"
        " VALUES (%(asked_deal)s, now(), 'pending', 'awaiting_confirmation', 'eve', '')",
    ),
    not_promised("invoices", "sums of a report", "UPDATE daily_sums SET created = 1000"),
)

_WITHDRAWALS: Final = (
    found(
        "withdrawals",
        "a large withdrawal past the second person",
        "UPDATE withdrawals SET substatus = 'processing' WHERE id = %(large)s",
        "%(large)s",
        "substatus is processing",
    ),
    found(
        "withdrawals",
        "a withdrawal that waits paid",
        "UPDATE withdrawals SET status = 'success', external_tx_id = 'x', processed_at = now() WHERE id = %(small)s",
        "%(small)s: status is success",
    ),
    found(
        "withdrawals",
        "a withdrawal with its transfer",
        "WITH new AS (INSERT INTO withdrawals (id, merchant_id, request_key, method_id, network, address, amount,"
        " network_fee, status, created_at, updated_at) VALUES (%(forged_withdrawal)s, %(merchant)s, gen_random_uuid(),"
        " 1, 'TRC20', 'TEvil', 20, 1, 'pending', now(), now()))"
        " INSERT INTO transfers SELECT gen_random_uuid(), 'withdrawal:' || %(forged_withdrawal)s || ':reserve',"
        " available.id, reserved.id, 20, now() FROM accounts AS available, accounts AS reserved"
        " WHERE available.merchant_id = %(merchant)s AND available.kind = 'merchant_available'"
        " AND reserved.merchant_id = %(merchant)s AND reserved.kind = 'merchant_reserved'",
        "%(forged_withdrawal)s",
        "act is none",
    ),
    found(
        "withdrawals",
        "a credit of an unpaid invoice",
        "INSERT INTO transfers SELECT gen_random_uuid(), 'invoice:' || %(canceled)s, settlement.id, available.id, 7000,"
        " now() FROM accounts AS settlement, accounts AS available WHERE settlement.kind = 'settlement'"
        " AND available.merchant_id = %(merchant)s AND available.kind = 'merchant_available'",
        "%(canceled)s",
        "7000.000000 USDT credited",
    ),
    found(
        "withdrawals",
        "a released amount of a paid withdrawal",
        "INSERT INTO transfers SELECT gen_random_uuid(), 'withdrawal:' || %(paid)s || ':release', settlement.id,"
        " available.id, 30, now() FROM accounts AS settlement, accounts AS available"
        " WHERE settlement.kind = 'settlement' AND available.merchant_id = %(merchant)s"
        " AND available.kind = 'merchant_available'",
        "%(paid)s",
    ),
    found(
        "withdrawals",
        "an address in the book, dated back",
        "INSERT INTO withdrawal_addresses (id, merchant_id, method_id, network, address, name, added_by, created_at,"
        " usable_at) VALUES (%(forged_address)s, %(merchant)s, 1, 'TRC20', 'TEvil', 'mine', 'mine',"
        " now() - interval '9 days', now() - interval '8 days')",
        "%(forged_address)s",
        "act is none",
    ),
    found(
        "withdrawals",
        "a fee",
        "UPDATE withdrawal_methods SET network_fee = 0 WHERE code = 'USDT-ERC20'",
        "withdrawal method USDT-ERC20: network_fee is 0",
    ),
    found(
        "withdrawals",
        "a method whose code stands before all others",
        "INSERT INTO withdrawal_methods (id, code, network, name, network_fee, min_amount, memo_allowed, enabled)"
        " VALUES (77, '', 'TRC20', 'mine', 0, 1, false, true)",
        "withdrawal method : key is ",
    ),
    found_of_owner(
        "withdrawals",
        "a credit booked twice",
        "ALTER TABLE transfers DROP CONSTRAINT uq_transfers_reference;"
        " INSERT INTO transfers SELECT gen_random_uuid(), reference, debit_account, credit_account, amount, now()"
        " FROM transfers WHERE reference = 'invoice:' || %(adjusted)s",
        "invoice:%(adjusted)s stands 2 times",
    ),
    found_of_owner(
        "withdrawals",
        "a balance below zero",
        "ALTER TABLE accounts DROP CONSTRAINT ck_accounts_balance_not_negative;"
        " UPDATE accounts SET balance = -50000 WHERE merchant_id = %(merchant)s AND kind = 'merchant_reserved'",
        "merchant_reserved of merchant %(merchant)s",
        "below zero",
    ),
    refused("withdrawals", "where a withdrawal goes", "UPDATE withdrawals SET address = 'TEvil'"),
    refused("withdrawals", "a withdrawal's amount", "UPDATE withdrawals SET amount = 900000000"),
    refused("withdrawals", "a balance", "UPDATE accounts SET balance = 900000000"),
    refused(
        "withdrawals",
        "a balance that is no number",
        "INSERT INTO accounts (kind, merchant_id, balance) VALUES ('merchant_available', gen_random_uuid(), 'NaN')",
    ),
    refused(
        "withdrawals",
        "a new account with money",
        "INSERT INTO accounts (kind, merchant_id, balance) VALUES ('merchant_available', gen_random_uuid(), 5)",
    ),
    refused("withdrawals", "a transfer changed", "UPDATE transfers SET amount = 3000"),
    refused("withdrawals", "a transfer deleted", "DELETE FROM transfers"),
    refused("withdrawals", "an address usable at once", "UPDATE withdrawal_addresses SET usable_at = now()"),
    refused("withdrawals", "a method deleted", "DELETE FROM withdrawal_methods"),
    not_promised("withdrawals", "a notice about an address", "DELETE FROM address_notices"),
)

_WEBHOOKS: Final = (
    found(
        "webhooks",
        "an event of an unpaid invoice",
        "INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url,"
        " destination, payload, auto_attempts, manual_attempts, next_retry_at, created_at, updated_at)"
        " SELECT gen_random_uuid(), %(canceled_by_nobody)s, merchant_id, key_id, event_type, 'pending', callback_url,"
        " destination, payload, 0, 0, now() + interval '1 day', now(), now() FROM events WHERE invoice_id = %(sold)s",
        "%(canceled_by_nobody)s",
        "unknown or not finished",
    ),
    found(
        "webhooks",
        "another body with another seal",
        "UPDATE events SET payload = 'x', seal = 'AAAA' WHERE invoice_id = %(canceled)s",
        "%(canceled)s",
        "seal is wrong",
    ),
    refused("webhooks", "another body", "UPDATE events SET payload = 'x' WHERE invoice_id = %(sold)s"),
    refused("webhooks", "an event deleted", "DELETE FROM events"),
    not_promised(
        "webhooks",
        "the text of an attempt",
        "INSERT INTO attempts (event_id, try_number, trigger, status, duration_ms, created_at, error_message)"
        " SELECT id, 900, 'manual', 'failure', 1, now(), 'eve' FROM events WHERE invoice_id = %(sold)s",
    ),
    not_promised(
        "webhooks",
        "the time of the next attempt",
        "UPDATE events SET next_retry_at = now() + interval '6 days' WHERE status = 'pending'",
    ),
)

_OF_OWNERS: Final = (
    found_of_owner(
        "merchants",
        "an act changed",
        "UPDATE acts SET note = 'nothing' WHERE act = 'merchant.create' AND object = 'merchant:' || %(banned)s",
        "merchant.create",
        "no process of the service wrote it",
    ),
    found_of_owner(
        "catalog",
        "an act deleted from the middle of the chain",
        "DELETE FROM acts WHERE id = (SELECT act_id FROM act_chain WHERE number = 3)",
        "entry 3 of the chain, is missing",
    ),
    found_of_owner(
        "webhooks",
        "the chain cut at its end, with its acts",
        "WITH cut AS (DELETE FROM act_chain RETURNING act_id) DELETE FROM acts WHERE id IN (SELECT act_id FROM cut)",
        "webhooks",
        "acts were removed at its end",
    ),
    found_of_owner(
        "withdrawals",
        "a credit and its balance deleted",
        "WITH gone AS (DELETE FROM transfers WHERE reference = 'invoice:' || %(sold)s RETURNING amount)"
        " UPDATE accounts SET balance = balance - (SELECT amount FROM gone)"
        " WHERE merchant_id = %(merchant)s AND kind = 'merchant_available'",
        "%(sold)s",
        "never credited",
    ),
    found_of_owner(
        "withdrawals",
        "a paid withdrawal deleted",
        "DELETE FROM withdrawals WHERE id = %(gone)s",
        "%(gone)s",
        "row is deleted",
    ),
    found_of_owner(
        "withdrawals",
        "a withdrawal given to another merchant",
        "UPDATE withdrawals SET merchant_id = %(banned)s WHERE id = %(small)s",
        "%(small)s",
        "merchant_id is",
    ),
    found_of_owner(
        "withdrawals",
        "a balance",
        "UPDATE accounts SET balance = balance + 1 WHERE kind = 'merchant_reserved' AND merchant_id = %(merchant)s",
        "its transfers add up to",
    ),
    found_of_owner(
        "invoices",
        "a paid deal's rate, with the credit that follows from it",
        "UPDATE deals SET conversion_rate = 0.10,"
        " merchant_usdt = div(invoice_amount * (100 - merchant_percent) * 1000000, 10) / 1000000"
        " WHERE id = %(adjusted_deal)s",
        "%(adjusted_deal)s",
        "terms",
    ),
    found_of_owner(
        "invoices",
        "a paid invoice deleted with its deal and fact",
        "WITH fact AS (DELETE FROM facts WHERE event_id = (SELECT event_id FROM invoices WHERE id = %(erased)s)),"
        " deal AS (DELETE FROM deals WHERE invoice_id = %(erased)s) DELETE FROM invoices WHERE id = %(erased)s",
        "%(erased)s",
        "unknown invoice",
    ),
    found_of_owner(
        "invoices",
        "an account deleted",
        "DELETE FROM requisites WHERE id = %(unused_account)s",
        "%(unused_account)s: row is deleted",
    ),
    found_of_owner(
        "invoices",
        "a row that can't be read",
        "UPDATE deals SET finished_at = '20000-01-01' WHERE id = %(rejected_deal)s",
        "%(rejected_deal)s",
    ),
    found_of_owner(
        "merchants",
        "a key given to another merchant",
        "UPDATE api_keys SET merchant_id = %(banned)s WHERE id = %(dead_key)s",
        "%(dead_key)s: merchant_id is",
    ),
    found_of_owner(
        "merchants",
        "an act that can't be read",
        "ALTER TABLE acts DROP CONSTRAINT ck_acts_changes;"
        f" UPDATE acts SET changes = '{'[' * 5000 + ']' * 5000}'"
        " WHERE id = (SELECT id FROM acts WHERE act = 'key.create' ORDER BY id LIMIT 1)",
        "acts of merchants: entry",
        "RecursionError",
    ),
)

ATTACKS: Final = (*_ACCOUNTS, *_CATALOG, *_MERCHANTS, *_INVOICES, *_WITHDRAWALS, *_WEBHOOKS, *_OF_OWNERS)

DOCUMENT: Final = Path("docs/security.md")
_BEGIN, _END = "<!-- attacks: written by tests/security/attacks.py -->\n", "<!-- end of attacks -->"


def documented(text: str) -> str:
    """Returns the document with the table made anew: a row for each service, and one for the owners of databases."""
    rows = [
        "| with the database of | refused | found by `fiatgate verify` | not promised |",
        "|---|---|---|---|",
    ]
    for name in (*SERVICES, "any, as its owner with triggers off"):
        of = [each for each in ATTACKS if _row_of(each) == name]
        cells = ("; ".join(each.what for each in of if each.outcome is outcome) for outcome in Outcome)
        rows.append(f"| {name} | {' | '.join(cells)} |")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return before + _BEGIN + "\n" + "\n".join(rows) + "\n\n" + _END + after


def _row_of(attack: Attack) -> str:
    return "any, as its owner with triggers off" if attack.by_owner else attack.service


if __name__ == "__main__":
    DOCUMENT.write_text(documented(DOCUMENT.read_text()))
