"""Attacks by the owner of a database, with triggers off."""

from typing import Final

from tests.security.attacks.attack import found_of_owner

ATTACKS: Final = (
    found_of_owner(
        "identity",
        "an act changed",
        "UPDATE acts SET note = 'nothing' WHERE act = 'merchant.create' AND object = 'merchant:' || %(banned)s",
        "merchant.create",
        "no process of the service wrote it",
    ),
    found_of_owner(
        "identity",
        "a person deleted",
        "DELETE FROM people WHERE id = %(deleted)s",
        "%(deleted)s: row is deleted",
    ),
    found_of_owner(
        "identity",
        "a person's address",
        "UPDATE people SET email = 'eve@example.com' WHERE id = %(renamed)s",
        "%(renamed)s: email is eve@example.com",
    ),
    found_of_owner(
        "identity",
        "a kept head with a time that can't be read",
        "ALTER TABLE act_heads DROP CONSTRAINT ck_act_heads_bounds; INSERT INTO act_heads (service, count, hash, at,"
        " seal) SELECT 'invoices', count, hash, '200000-01-01', seal FROM act_heads LIMIT 1",
        "identity: the head of invoices",
        "added by hand",
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
        "which is unknown or not finished",
    ),
    found_of_owner(
        "invoices",
        "another approver of a request",
        "UPDATE approvals SET decided_by = 'eve@example.com', decided_as = 'eve@example.com'"
        " WHERE state = 'approved' AND object = 'deal:' || %(adjusted_deal)s",
        "decision is that of eve@example.com",
    ),
    found_of_owner(
        "invoices",
        "a request for a second person deleted",
        "DELETE FROM approvals WHERE id = %(rejected_request)s",
        "%(rejected_request)s: row is deleted",
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
        "ALTER TABLE deals DROP CONSTRAINT ck_deals_bounds;"
        " UPDATE deals SET finished_at = '20000-01-01' WHERE id = %(rejected_deal)s",
        "%(rejected_deal)s",
    ),
    found_of_owner(
        "identity",
        "a key given to another merchant",
        "UPDATE api_keys SET merchant_id = %(banned)s WHERE id = %(dead_key)s",
        "%(dead_key)s: merchant_id is",
    ),
    found_of_owner(
        "identity",
        "another hash of a key",
        "UPDATE api_keys SET key_hash = sha256('mine') WHERE id = %(dead_key)s",
        "%(dead_key)s: key_sha256 is",
    ),
    found_of_owner(
        "identity",
        "an act that can't be read",
        "ALTER TABLE acts DROP CONSTRAINT ck_acts_changes, DROP CONSTRAINT ck_acts_bounds;"
        f" UPDATE acts SET changes = '{'[' * 5000 + ']' * 5000}'"
        " WHERE id = (SELECT id FROM acts WHERE act = 'key.create' ORDER BY id LIMIT 1)",
        "acts of identity: entry",
        "RecursionError",
    ),
    found_of_owner(
        "catalog",
        "a trigger added",
        "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        " CREATE TRIGGER swallow BEFORE DELETE ON poll_turns FOR EACH ROW EXECUTE FUNCTION swallow()",
        "relation poll_turns: trigger swallow is O CREATE TRIGGER",
        "due is nothing",
    ),
    found_of_owner(
        "withdrawals",
        "a guard switched off",
        "ALTER TABLE withdrawals DISABLE TRIGGER withdrawals_stay",
        "relation withdrawals: trigger withdrawals_stay is D",
    ),
    found_of_owner(
        "identity",
        "a right given to the service's role",
        "GRANT DELETE ON acts TO identity",
        "relation acts: rights is DELETE, INSERT, SELECT",
    ),
    found_of_owner(
        "invoices",
        "an invoice given to another merchant before its customer chooses a method",
        "UPDATE invoices SET merchant_id = %(banned)s WHERE id = %(waiting)s",
        "invoice %(waiting)s: terms",
    ),
)
