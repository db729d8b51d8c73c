"""Attacks by someone who has the address of bank's database."""

from typing import Final

from tests.security.attacks.attack import found, refused

ATTACKS: Final = (
    found(
        "bank",
        "a connector's key of one's own",
        "INSERT INTO connectors (id, name, hint, key_hash, accounts, created_at) VALUES (%(forged_connector)s, 'eve',"
        " 'fgc_eve', sha256('eve'), ARRAY['1:EUR'], now())",
        "%(forged_connector)s",
        "act is none",
    ),
    found(
        "bank",
        "a line of that key",
        "INSERT INTO lines (id, connector_id, account, identity, direction, amount, currency_code, status, booked_on,"
        " counterparty_name, counterparty_account, text, reference_texts, created_at, state, seal)"
        " VALUES (%(forged_line)s, %(forged_connector)s, '1', 'id:eve:1', 'credit', 900, 'EUR', 'booked', now(), '',"
        " '', '', '', now(), 'unmatched', sha256('eve'))",
        "%(forged_line)s",
        "seal",
    ),
    found(
        "bank",
        "a use of a line that no form made",
        "UPDATE lines SET used_for = 'refund:' || %(forged_line)s WHERE id = CAST(%(forged_line)s AS uuid)",
        "%(forged_line)s",
        "act is none, due is one of bank-line.ignore",
    ),
    found(
        "bank",
        "a payment by a line",
        "INSERT INTO line_matches (number, line_id, deal_id, invoice_id, amount, paid_at)"
        " VALUES (1, %(forged_line)s, %(asked_deal)s, %(asked)s, 5, now() - interval '1 hour')",
        "bank line %(forged_line)s paid deal %(asked_deal)s for bank, not for invoices",
    ),
    refused("bank", "a line's amount", "UPDATE lines SET amount = 1", "permission denied for table lines"),
    refused("bank", "a line deleted", "DELETE FROM lines", "permission denied for table lines"),
    refused(
        "bank",
        "the accounts of a key",
        "UPDATE connectors SET accounts = ARRAY['1:EUR']",
        "permission denied for table connectors",
    ),
    refused(
        "bank",
        "a payment changed",
        "UPDATE line_matches SET amount = 1",
        "permission denied for table line_matches",
    ),
    refused(
        "bank",
        "a statement's balance",
        "UPDATE statements SET closing = 1",
        "permission denied for table statements",
    ),
    refused("bank", "a file", "UPDATE imports SET content = 'x'", "permission denied for table imports"),
    found(
        "bank",
        "a profile of CSV files that reads debits as credits",
        "INSERT INTO csv_profiles (name, profile, actor, changed_at) VALUES ('eve', '{\"inverted\": true}', 'eve',"
        " now())",
        "profile of CSV files eve",
        "act is none",
    ),
    found(
        "bank",
        "a statement of one's own",
        "WITH file AS (INSERT INTO imports (id, digest, file_name, profile, content, state, lines, new_lines,"
        " imported_at, seal) VALUES (%(forged_line)s, sha256('eve'), 'eve', '', 'eve', 'taken', 0, 0, now(),"
        " sha256('eve')) RETURNING id) INSERT INTO statements (id, import_id, account, currency_code, number, closing,"
        " closed_on, seal) SELECT %(forged_line)s, id, '1', 'EUR', '', 900, now(), sha256('eve') FROM file",
        "bank statement %(forged_line)s",
        "seal",
    ),
)
