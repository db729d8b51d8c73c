"""Profiles of CSV files by name: the files of real banks by them, previews, and a profile that SQL wrote."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import text

from services.bank.domain.proposals import ImportState
from services.bank.operations import importing, profiles
from services.bank.operations.importing import Preview
from services.bank.wiring import Deps
from tests.bank.test_importing import problems_of, stored
from tests.support.acting import refusal

Form = dict[str, Any]

SPARKASSE = (
    "Auftragskonto;Buchungstag;Valutadatum;Buchungstext;Verwendungszweck;Beguenstigter/Zahlungspflichtiger;"
    "Kontonummer;BIC (SWIFT-Code);Betrag;Waehrung;Info\n"
    "DE89370400440532013000;28.11.26;28.11.26;GUTSCHR. UEBERWEISUNG;Bestellung 7K3M 9QT9;Jürgen Groß;"
    "DE02120300000000202051;BYLADEM1001;1.234,56;EUR;Umsatz gebucht\n"
    "DE89370400440532013000;27.11.26;27.11.26;ENTGELTABSCHLUSS;Entgelte;;;;-4,90;EUR;Umsatz gebucht\n"
)
FRENCH = (
    "Téléchargement du 28/11/2026;;;\n\n"
    "Date;Libellé;Débit euros;Crédit euros;\n"
    "28/11/2026;VIREMENT DE MME ANAÏS NOËL;;1\u00a0234,56;\n"
    "27/11/2026;PRLV SFR;-35,99;;\n"
)
BRITISH = (
    "Transaction Date,Transaction Type,Sort Code,Account Number,Transaction Description,Debit Amount,Credit Amount,"
    "Balance\n"
    '28/11/2026,FPI,\'30-94-57,12345678,"SMITH, J 7K3M9QT9",,1234.56,1734.56\n'
    "27/11/2026,DD,'30-94-57,12345678,COUNCIL TAX,150.00,,500.00\n"
)
AMERICAN = (
    "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #\n"
    'CREDIT,11/28/2026,"Zelle payment from JANE ROE","$1,234.56",QUICKPAY_CREDIT,,,\n'
    'DEBIT,11/27/2026,"COFFEE",-4.50,DEBIT_CARD,,,\n'
)
TABS = "28 Nov 2026\tJane Roe\torder 7K3M9QT9\t1,234.56\tGBP\n27 Nov 2026\t\tfee\t(4.50)\tGBP\n"

BANKS: dict[str, tuple[str, str, Form, list[str]]] = {
    "a German savings bank": (
        SPARKASSE,
        "cp1252",
        {
            "columns": {
                "day": "Buchungstag",
                "value_day": "Valutadatum",
                "amount": "Betrag",
                "currency": "Waehrung",
                "account": "Auftragskonto",
                "text": "Verwendungszweck",
                "counterparty_name": "Beguenstigter/Zahlungspflichtiger",
                "counterparty_account": "Kontonummer",
            },
            "day_form": "%d.%m.%y",
            "encoding": "cp1252",
        },
        [
            "1234.56 EUR DE89370400440532013000 2026-11-28 Jürgen Groß Bestellung 7K3M 9QT9",
            "-4.90 EUR DE89370400440532013000 2026-11-27  Entgelte",
        ],
    ),
    "a French bank": (
        FRENCH,
        "cp1252",
        {
            "columns": {"day": "Date", "text": "Libellé", "debit": "Débit euros", "credit": "Crédit euros"},
            "rows_above": 1,
            "day_form": "%d/%m/%Y",
            "encoding": "cp1252",
            "currency": "EUR",
            "account": "FR14 2004 1010 0505 0001 3M02 606",
        },
        [
            "1234.56 EUR FR1420041010050500013M02606 2026-11-28  VIREMENT DE MME ANAÏS NOËL",
            "-35.99 EUR FR1420041010050500013M02606 2026-11-27  PRLV SFR",
        ],
    ),
    "a British bank": (
        BRITISH,
        "utf-8",
        {
            "columns": {
                "day": "Transaction Date",
                "debit": "Debit Amount",
                "credit": "Credit Amount",
                "account": "Account Number",
                "text": "Transaction Description",
                "balance": "Balance",
            },
            "delimiter": ",",
            "decimal_mark": ".",
            "day_form": "%d/%m/%Y",
            "currency": "GBP",
        },
        [
            "1234.56 GBP 12345678 2026-11-28  SMITH, J 7K3M9QT9",
            "-150.00 GBP 12345678 2026-11-27  COUNCIL TAX",
        ],
    ),
    "an American bank": (
        AMERICAN,
        "utf-8",
        {
            "columns": {"day": "Posting Date", "amount": "Amount", "text": "Description"},
            "delimiter": ",",
            "decimal_mark": ".",
            "day_form": "%m/%d/%Y",
            "currency": "USD",
            "account": "000111222",
        },
        [
            "1234.56 USD 000111222 2026-11-28  Zelle payment from JANE ROE",
            "-4.50 USD 000111222 2026-11-27  COFFEE",
        ],
    ),
    "tabs without a header": (
        TABS,
        "utf-16",
        {
            "columns": {"day": 1, "counterparty_name": 2, "text": 3, "amount": 4, "currency": 5},
            "has_header": False,
            "delimiter": "\t",
            "decimal_mark": ".",
            "day_form": "%d %b %Y",
            "encoding": "utf-16",
            "account": "GB1",
        },
        ["1234.56 GBP GB1 2026-11-28 Jane Roe order 7K3M9QT9", "-4.50 GBP GB1 2026-11-27  fee"],
    ),
}


def uploaded(bank: Deps, content: str | bytes, encoding: str = "utf-8") -> str:
    """The id of the import of a CSV file, which nobody has described yet."""
    whole = content.encode(encoding) if isinstance(content, str) else content
    kept = importing.import_file(bank, content=whole, file_name="lines.csv").file
    assert (kept.state, kept.format) == (ImportState.REFUSED, "csv")
    return str(kept.id)


def previewed(bank: Deps, import_id: str, **given: str) -> Preview:
    nothing = {"encoding": "", "delimiter": "", "profile": "", "profile_name": ""}
    return importing.get_preview(bank, import_id=import_id, **nothing | given)


def shown(found: Preview) -> list[str]:
    return [
        f"{'-' if line.direction == 'debit' else ''}{line.amount} {line.currency_code} {line.account}"
        f" {line.booked_on} {line.counterparty_name} {line.text}"
        for line in found.lines
    ]


def saved(bank: Deps, name: str, **changes: object) -> str:
    form: Form = {"columns": {"day": 1, "amount": 2}, "has_header": False, "currency": "EUR", "account": "P1"}
    return profiles.save_csv_profile(bank, name=name, profile=json.dumps(form | changes)).name


def names(bank: Deps) -> Sequence[str]:
    return [each.name for each in profiles.list_csv_profiles(bank)]


@pytest.mark.parametrize("which", BANKS)
def test_a_file_of_a_bank_is_guessed_previewed_and_imported_by_a_saved_profile(
    bank: Deps, which: str
) -> None:
    content, encoding, form, lines = BANKS[which]
    id = uploaded(bank, content, encoding)
    guess = previewed(bank, id)
    assert (guess.encoding, guess.delimiter) == (
        form.get("encoding", "utf-8-sig"),
        form.get("delimiter", ";"),
    )
    assert guess.rows[-1][0] in content.splitlines()[-1] and not guess.lines and not guess.problem
    assert shown(previewed(bank, id, profile=json.dumps(form))) == lines
    name = profiles.save_csv_profile(bank, name=f"bank-{len(which)}", profile=json.dumps(form)).name
    found = previewed(bank, id, profile_name=name)
    assert shown(found) == lines
    importing.import_file(bank, content=b"", file_name="", import_id=id, profile_name=name)
    while importing.read_next(bank):
        pass
    account = found.lines[0].account
    assert {line.id for line in stored(bank, account)} == {line.id for line in found.lines}
    assert problems_of(bank, "csv_profiles") == set()


def test_a_preview_reads_the_first_rows_alone_and_says_why_it_can_not(bank: Deps) -> None:
    rows = "".join(f"{day:02}.11.2026;{day},00\n" for day in range(1, 29))
    id = uploaded(bank, f"{rows}30.02.2026;x;")
    name = saved(bank, "first")
    found = previewed(bank, id, profile_name=name)
    assert (len(found.rows), len(found.lines), found.problem) == (15, 10, "")
    found = previewed(bank, id, profile_name=saved(bank, "us", day_form="%m/%d/%Y"))
    assert found.problem == "Line 1: this is no day as 12/31/2026: '01.11.2026'."
    assert len(found.rows) == 15 and not found.lines
    odd = uploaded(bank, rows)
    found = previewed(bank, odd, encoding="utf-16", delimiter="|")
    assert (found.rows, found.encoding, found.delimiter) == ((), "utf-16", "|")
    assert "no text in utf-16" in found.problem
    wide = previewed(bank, uploaded(bank, f"1;{'y' * 200}{';' * 90}\n"))
    assert [len(row) for row in wide.rows] == [40] and len(wide.rows[0][1]) == 80
    above = previewed(bank, id, profile=json.dumps({**BANKS["a French bank"][2], "rows_above": 40}))
    assert "names this column 0 times" in above.problem and not above.lines


def test_each_wrong_field_of_a_profile_is_named(bank: Deps) -> None:
    wrong = json.dumps({"columns": {"text": 1}, "account": "€", "day_form": "%d"})
    refused = refusal(profiles.save_csv_profile, bank, name="wrong", profile=wrong)
    told = {name.removeprefix("also "): said for name, said in refused.metadata.items() if name != "field"}
    assert refused.metadata["field"] == "profile.day"
    assert set(told) == {f"profile.{each}" for each in ("amount", "currency", "account", "day_form")}
    for profile in ("", "{", "[]", '{"columns": 3}', '{"columns": {"day": {}}}', "x" * 4001):
        refused = refusal(profiles.save_csv_profile, bank, name="wrong", profile=profile)
        assert refused.metadata["field"].startswith("profile")
    misspelt = json.dumps({**BANKS["a French bank"][2], "decimal": "."})
    assert refusal(profiles.checked, misspelt).metadata["field"] == "profile.decimal"
    for name in ("", "a b", "x" * 65):
        assert refusal(saved, bank, name).metadata["field"] == "name"
    assert "wrong" not in names(bank)


def test_a_profile_is_replaced_deleted_and_made_again(bank: Deps) -> None:
    assert saved(bank, "mine") in names(bank)
    saved(bank, "mine", account="P2")
    (found,) = (each for each in profiles.list_csv_profiles(bank) if each.name == "mine")
    assert '"P2"' in (found.profile or "") and found.actor
    profiles.delete_csv_profile(bank, name="mine")
    assert "mine" not in names(bank)
    for refused in (
        refusal(profiles.delete_csv_profile, bank, name="mine"),
        refusal(importing.import_file, bank, content=b"1;2", file_name="a.csv", profile_name="mine"),
    ):
        assert refused.message == "No profile of CSV files has this name"
    assert problems_of(bank, "csv_profiles") == set()
    saved(bank, "mine")
    assert "mine" in names(bank) and problems_of(bank, "csv_profiles") == set()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("profile = replace(profile, 'P1', 'P9')", "profile"),
        ("actor = 'ada@example.com'", "actor"),
        ("profile = NULL", "profile"),
    ],
)
def test_a_profile_that_sql_changed_reads_nothing_and_is_named(bank: Deps, change: str, field: str) -> None:
    name = saved(bank, f"forged-{uuid.uuid4()}")
    with bank.db.transaction() as tx:
        tx.execute(text(f"UPDATE csv_profiles SET {change} WHERE name = :name"), {"name": name})
    refused = refusal(importing.import_file, bank, content=b"1;2", file_name="a.csv", profile_name=name)
    assert refused.reason in ("NOT_DECIDED", "VALIDATION_ERROR")
    assert problems_of(bank, "csv_profiles") == {field}
    saved(bank, name)
    assert problems_of(bank, "csv_profiles") == set(), "saved anew, it counts"


def test_a_file_is_not_taken_again_by_another_profile(bank: Deps) -> None:
    content = b"28.11.2026;31,00\n"
    ids = [
        importing.import_file(
            bank, content=content, file_name="a.csv", profile_name=saved(bank, name, **form)
        )
        for name, form in {"one": {}, "two": {"account": "P3"}}.items()
    ]
    while importing.read_next(bank):
        pass
    states = [importing.get_import(bank, import_id=str(each.file.id)).file for each in ids]
    assert [each.state for each in states] == [ImportState.TAKEN, ImportState.REFUSED]
    assert "taken by another profile" in (states[1].problem or "")
    assert not stored(bank, "P3")


def test_a_kept_file_that_sql_changed_is_not_read_again(bank: Deps) -> None:
    id, copy = uploaded(bank, "28.11.2026;32,00\n"), str(uuid.uuid4())
    forged = (
        "INSERT INTO imports SELECT :copy, sha256('x'), file_name, profile, 'x;y', state, format, problem, lines,"
        " new_lines, imported_at, seal FROM imports WHERE id = :id"
    )
    with bank.db.transaction() as tx:
        tx.execute(text(forged), {"id": id, "copy": copy})
    refused = refusal(previewed, bank, copy)
    assert refused.reason == "BANK_FILE_REFUSED" and "past the service" in refused.message
