"""Attacks by someone who has the address of invoices' database."""

from typing import Final

from tests.security.attacks.attack import found, found_of_owner, not_promised, refused

_DEAL = (
    "INSERT INTO deals (id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code,"
    " currency_decimals, invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent, requisite_id,"
    " created_at, expires_at, seal, reference, takes_reference)"
    " SELECT %(forged_deal)s, %(waiting)s, merchant_id, 'pending', 'awaiting_payment', method_code, method_name,"
    " currency_code, {decimals}, (SELECT amount FROM invoices WHERE id = %(waiting)s), amount_fiat, {rate},"
    " client_percent, merchant_percent, requisite_id, now(), now() + interval '1 hour', seal, '7K3M9QTX', true"
    " FROM deals WHERE id = %(sold_deal)s"
)

ATTACKS: Final = (
    found(
        "invoices",
        "a colleague's appeal",
        "UPDATE deals SET status = 'appeal', sub_status = 'opened_by_operator' WHERE id = %(asked_deal)s",
        "%(asked_deal)s",
        "act is none",
    ),
    found(
        "invoices",
        "an operator's appeal as a customer's",
        "UPDATE deals SET sub_status = 'opened_by_customer' WHERE id = %(appealed_deal)s",
        "%(appealed_deal)s",
        "sub_status is opened_by_customer",
    ),
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
        "a payment link of one's own",
        "INSERT INTO links (id, merchant_id, code, amount, currency_code, note, created_at)"
        " SELECT %(forged_account)s, merchant_id, '7K3M9QTX', 1, currency_code, '', now() FROM invoices"
        " WHERE id = %(waiting)s",
        "%(forged_account)s",
        "act is none",
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
        "300 canceled invoices of 64 KB, which no answer holds",
        "INSERT INTO invoices SELECT (jsonb_populate_record(NULL::invoices, to_jsonb(one) || jsonb_build_object("
        "'id', gen_random_uuid(), 'event_id', gen_random_uuid(), 'external_id', gen_random_uuid(), 'purpose', long,"
        " 'callback_url', long, 'success_url', long, 'fail_url', long))).* FROM invoices AS one,"
        " repeat('x', 16000) AS long, generate_series(1, 300) WHERE id = %(canceled)s",
        "terms is not those that create-invoice was asked for",
    ),
    found(
        "invoices",
        "the switch for new deals",
        "INSERT INTO switches VALUES ('deals', false, now(), 'eve') ON CONFLICT (name) DO UPDATE SET enabled = false",
        "switch deals",
    ),
    found(
        "invoices",
        "the author of that switch, beside 120 kept heads of nobody",
        "UPDATE switches SET actor = 'eve'; INSERT INTO act_heads (service, count, hash, at, seal)"
        " SELECT 'a' || n, 1, sha256('a'), now(), sha256('a') FROM generate_series(1, 120) AS n",
        "switch deals",
        "actor is eve",
    ),
    found(
        "invoices",
        "late money answered in an operator's name",
        "INSERT INTO cases (invoice_id, merchant_id, deal_id, opened_at, note, resolved_at, outcome, actor, ended_as,"
        " policy, seal) SELECT invoice_id, merchant_id, id, now(), '', now(), 'No money came', 'ann@example.com',"
        " 'credit', 'credit', sha256('eve') FROM deals"
        " WHERE id = %(rejected_deal)s",
        "case 1001: act is none",
    ),
    found(
        "invoices",
        "a merchant's answer about late money",
        "INSERT INTO cases (number, invoice_id, merchant_id, deal_id, opened_at, note, policy, seal, merchant_answer,"
        " merchant_text, answered_by, answered_at) OVERRIDING SYSTEM VALUE SELECT 7001, invoice_id, merchant_id, id,"
        " now(), '', 'return', sha256('eve'), 'credit', '', 'ann@example.com', now() FROM deals"
        " WHERE invoice_id NOT IN (SELECT invoice_id FROM cases) LIMIT 1",
        "case 7001: act is none",
    ),
    found(
        "invoices",
        "what a merchant had chosen for late money",
        "INSERT INTO cases (number, invoice_id, merchant_id, deal_id, opened_at, note, policy, seal)"
        " OVERRIDING SYSTEM VALUE SELECT 7002, invoice_id, merchant_id, id, now(), '', 'credit', sha256('eve')"
        " FROM deals WHERE invoice_id NOT IN (SELECT invoice_id FROM cases) LIMIT 1",
        "case 7002",
        "terms is not those with which it was opened",
    ),
    found(
        "invoices",
        "a payment by a bank line",
        "INSERT INTO line_payments (line_id, deal_id, amount, line_amount, paid_at)"
        " SELECT %(forged_request)s, id, amount_fiat, amount_fiat, now() FROM deals WHERE id = %(sold_deal)s",
        "%(sold_deal)s: bank line %(forged_request)s is recorded by invoices, and bank has no such line",
    ),
    found(
        "invoices",
        "a rule by which bank lines confirm deals, switched on",
        "INSERT INTO line_rules (method_code, currency_code, enabled, deal_most, day_most, changed_at, actor)"
        " SELECT method_code, currency_code, true, 900, 900, now(), 'ann@example.com' FROM deals"
        " WHERE id = %(sold_deal)s",
        "rule of bank lines",
        "act is none",
    ),
    found_of_owner(
        "invoices",
        "the reference of a deal, which a bank line names",
        "UPDATE deals SET reference = '7K3M9QTW' WHERE id = %(open_deal)s",
        "%(open_deal)s",
        "terms is not those that were locked when it was opened",
    ),
    refused(
        "invoices",
        "an account's number",
        "UPDATE requisites SET account = 'GB33BUKB20201555555555'",
        "permission denied for table requisites",
    ),
    refused(
        "invoices",
        "a deal that waits for an operator, replaced",
        "UPDATE deals SET status = 'canceled', sub_status = 'replaced', finished_at = now() WHERE id = %(open_deal)s",
        "ck_deals_marked",
    ),
    refused(
        "invoices",
        "a deal that waits for an operator, back to its customer",
        "UPDATE deals SET sub_status = 'awaiting_payment' WHERE id = %(open_deal)s",
        "ck_deals_marked",
    ),
    refused(
        "invoices",
        "a deal that waits for an operator, as if it were not paid",
        "UPDATE deals SET mark_paid_at = NULL, confirm_before = NULL, sub_status = 'awaiting_payment'"
        " WHERE id = %(open_deal)s",
        "UPDATE of deals is refused: sender_name, sender_words, mark_paid_at are set once",
    ),
    refused(
        "invoices",
        "a deal's rate",
        "UPDATE deals SET conversion_rate = 0.1",
        "permission denied for table deals",
    ),
    refused(
        "invoices",
        "a deal's commission",
        "UPDATE deals SET merchant_percent = 0",
        "permission denied for table deals",
    ),
    refused(
        "invoices",
        "a deal's account",
        "UPDATE deals SET requisite_id = %(disabled_account)s",
        "permission denied for table deals",
    ),
    refused(
        "invoices",
        "an invoice's amount",
        "UPDATE invoices SET amount = 1",
        "permission denied for table invoices",
    ),
    refused(
        "invoices",
        "an invoice's merchant",
        "UPDATE invoices SET merchant_id = %(banned)s",
        "permission denied for table invoices",
    ),
    refused(
        "invoices",
        "a finished deal changed",
        "UPDATE deals SET merchant_usdt = 3000 WHERE id = %(sold_deal)s",
        "UPDATE of deals is refused: it has ended, and that is final",
    ),
    refused(
        "invoices",
        "a deal deleted",
        "DELETE FROM deals WHERE id = %(open_deal)s",
        "permission denied for table deals",
    ),
    refused(
        "invoices",
        "a payment by a bank line changed",
        "UPDATE line_payments SET amount = 1",
        "permission denied for table line_payments",
    ),
    refused(
        "invoices",
        "a payment by a bank line deleted",
        "DELETE FROM line_payments",
        "permission denied for table line_payments",
    ),
    refused("invoices", "a signed fact deleted", "DELETE FROM facts", "permission denied for table facts"),
    refused(
        "invoices",
        "a deal of 200,000 decimals",
        _DEAL.format(decimals="200000", rate="1"),
        "ck_deals_currency_decimals",
    ),
    refused(
        "invoices",
        "a credit that is no number",
        "UPDATE deals SET merchant_usdt = 'NaN' WHERE id = %(asked_deal)s",
        "ck_deals_bounds",
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
