"""Attacks by someone who has the address of withdrawals' database."""

from typing import Final

from tests.security.attacks.attack import found, found_of_owner, not_promised, refused

ATTACKS: Final = (
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
        "a correction with its transfer",
        "WITH made AS (INSERT INTO corrections (id, kind, merchant_id, amount, owed, reason, evidence, request_key,"
        " created_at) VALUES (%(forged_withdrawal)s, 'manual_credit', %(merchant)s, 900, 0, 'r', 'e',"
        " gen_random_uuid(), now()))"
        " INSERT INTO transfers SELECT gen_random_uuid(), 'correction:' || %(forged_withdrawal)s, settlement.id,"
        " available.id, 900, now() FROM accounts AS settlement, accounts AS available"
        " WHERE settlement.kind = 'settlement' AND available.merchant_id = %(merchant)s"
        " AND available.kind = 'merchant_available'",
        "%(forged_withdrawal)s",
        "act is none",
    ),
    found(
        "withdrawals",
        "a refund to an account of one's own",
        "INSERT INTO refunds (id, merchant_id, invoice_id, external_id, origin, refund_amount, currency_code, amount,"
        " conversion_rate, reason, status, account_kind, account, holder, account_by_customer, created_at, updated_at)"
        " VALUES (%(forged_withdrawal)s, %(merchant)s, %(canceled)s, 'x', 'late', 50, 'EUR', 0, 1, '', 'ready',"
        " 'free', '1', 'Evil', false, now(), now())",
        "%(forged_withdrawal)s",
        "act is none",
    ),
    refused(
        "withdrawals",
        "a debt that nothing pays",
        "INSERT INTO transfers SELECT gen_random_uuid(), 'debt:invoice:' || %(canceled)s, available.id, owed.id, 5,"
        " now() FROM accounts AS available, accounts AS owed WHERE available.merchant_id = %(merchant)s"
        " AND available.kind = 'merchant_available' AND owed.merchant_id = %(merchant)s"
        " AND owed.kind = 'merchant_owed'",
        "is refused",
    ),
    refused(
        "withdrawals",
        "reserved money of a withdrawal freed by an invented refund",
        "WITH made AS (INSERT INTO refunds (id, merchant_id, invoice_id, external_id, origin, refund_amount,"
        " currency_code, amount, conversion_rate, reason, status, account_by_customer, created_at, updated_at,"
        " finished_at) VALUES (%(forged_withdrawal)s, %(merchant)s, %(canceled)s, 'x', 'credited', 500, 'EUR', 500, 1,"
        " '', 'canceled', false, now(), now(), now()))"
        " INSERT INTO transfers SELECT gen_random_uuid(), 'refund:' || %(forged_withdrawal)s || ':release',"
        " reserved.id,"
        " available.id, 500, now() FROM accounts AS reserved, accounts AS available"
        " WHERE reserved.merchant_id = %(merchant)s AND reserved.kind = 'merchant_reserved'"
        " AND available.merchant_id = %(merchant)s AND available.kind = 'merchant_available'",
        "is refused",
    ),
    refused(
        "withdrawals",
        "a released amount of a paid withdrawal",
        "INSERT INTO transfers SELECT gen_random_uuid(), 'withdrawal:' || %(paid)s || ':release', settlement.id,"
        " available.id, 30, now() FROM accounts AS settlement, accounts AS available"
        " WHERE settlement.kind = 'settlement' AND available.merchant_id = %(merchant)s"
        " AND available.kind = 'merchant_available'",
        "no step of a withdrawal",
    ),
    refused(
        "withdrawals",
        "a reserved amount free again",
        "INSERT INTO transfers SELECT gen_random_uuid(), 'withdrawal:' || %(large)s || ':release', reserved.id,"
        " available.id, 500, now() FROM accounts AS reserved, accounts AS available"
        " WHERE reserved.merchant_id = %(merchant)s AND reserved.kind = 'merchant_reserved'"
        " AND available.merchant_id = %(merchant)s AND available.kind = 'merchant_available'",
        "no step of a withdrawal",
    ),
    refused(
        "withdrawals",
        "a merchant's balance as fees",
        "INSERT INTO transfers SELECT gen_random_uuid(), 'invoice:' || gen_random_uuid(), available.id, fees.id, 50,"
        " now() FROM accounts AS fees, accounts AS available WHERE fees.kind = 'fees'"
        " AND available.merchant_id = %(merchant)s AND available.kind = 'merchant_available'",
        "no credit of an invoice",
    ),
    found(
        "withdrawals",
        "a balance at a day's end, beside 150 of fees",
        "INSERT INTO daily_balances SELECT id, date '1980-01-01' + n, 1 FROM accounts, generate_series(1, 150) AS n"
        " WHERE kind = 'fees'; INSERT INTO daily_balances SELECT id, '2026-11-01', 9999 FROM accounts"
        " WHERE merchant_id = %(merchant)s AND kind = 'merchant_available'",
        "of merchant %(merchant)s) held 9999",
    ),
    found(
        "withdrawals",
        "a payment of another day that nobody made",
        "INSERT INTO credits_of_other_days VALUES (%(canceled)s, %(merchant)s, 999999, '2026-10-05', now())",
        "999999.000000 for invoice %(canceled)s",
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
        "an address removed from the book, beside acts of 150 others that were never there",
        "UPDATE withdrawal_addresses SET removed_at = now() WHERE id = %(address)s;"
        " INSERT INTO acts (id, at, actor_kind, actor_name, surface, on_behalf_of, act, object, changes, note,"
        " request_id, refused, seal) SELECT gen_random_uuid(), now(), 'cli', 'eve', '', '', 'withdrawal-address.add',"
        " 'withdrawal-address:' || gen_random_uuid(), '[]', '', '', '', sha256('') FROM generate_series(1, 150)",
        "%(address)s: removed_at is ",
    ),
    found_of_owner(
        "withdrawals",
        "who added an address",
        "UPDATE withdrawal_addresses SET added_by = 'ann@example.com' WHERE id = %(named_address)s",
        "%(named_address)s: added_by is ann@example.com",
    ),
    found_of_owner(
        "withdrawals",
        "the key of a request, so that its repetition pays twice",
        "UPDATE withdrawals SET request_key = gen_random_uuid() WHERE id = %(small)s",
        "%(small)s: request_key is ",
    ),
    found_of_owner(
        "withdrawals",
        "a method of the first day deleted",
        "DELETE FROM withdrawal_methods WHERE code = 'USDT-POLYGON'",
        "withdrawal method USDT-POLYGON: row is deleted",
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
    refused(
        "withdrawals",
        "a step that nobody sees",
        "UPDATE withdrawals SET substatus = '' WHERE substatus IS NULL",
        "ck_withdrawals_status",
    ),
    refused(
        "withdrawals",
        "a request of 200 values in each other",
        "INSERT INTO approvals (id, act, object, summary, request, requested_by, requested_as, requested_at, note)"
        " VALUES (gen_random_uuid(), 'withdrawal.process', 'withdrawal:x', 'x', CAST('{\"a\": ' || repeat('[', 200)"
        " || repeat(']', 200) || '}' AS jsonb), 'a', 'a', now(), '')",
        "ck_approvals_bounds",
    ),
    refused(
        "withdrawals",
        "a request of 16 KiB, of which many fill the memory",
        "INSERT INTO approvals (id, act, object, summary, request, requested_by, requested_as, requested_at, note)"
        " VALUES (gen_random_uuid(), 'withdrawal.process', 'withdrawal:x', 'x',"
        " jsonb_build_object('a', repeat('x', 17000)), 'a', 'a', now(), '')",
        "ck_approvals_request",
    ),
    refused(
        "withdrawals",
        "where a withdrawal goes",
        "UPDATE withdrawals SET address = 'TEvil'",
        "permission denied for table withdrawals",
    ),
    refused(
        "withdrawals",
        "a withdrawal's amount",
        "UPDATE withdrawals SET amount = 900000000",
        "permission denied for table withdrawals",
    ),
    refused(
        "withdrawals",
        "a balance",
        "UPDATE accounts SET balance = 900000000",
        "permission denied for table accounts",
    ),
    refused(
        "withdrawals",
        "a new account with money",
        "INSERT INTO accounts (kind, merchant_id, balance) VALUES ('merchant_available', gen_random_uuid(), 5)",
        "INSERT of accounts is refused: the ledger is append-only, correct it with a further transfer",
    ),
    refused(
        "withdrawals",
        "a transfer changed",
        "UPDATE transfers SET amount = 3000",
        "permission denied for table transfers",
    ),
    refused(
        "withdrawals", "a transfer deleted", "DELETE FROM transfers", "permission denied for table transfers"
    ),
    refused(
        "withdrawals",
        "an address usable at once",
        "UPDATE withdrawal_addresses SET usable_at = now()",
        "permission denied for table withdrawal_addresses",
    ),
    refused(
        "withdrawals",
        "a method deleted",
        "DELETE FROM withdrawal_methods",
        "permission denied for table withdrawal_methods",
    ),
    not_promised("withdrawals", "a notice about an address", "DELETE FROM address_notices"),
)
