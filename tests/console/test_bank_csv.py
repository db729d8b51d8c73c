"""CSV files of banks at the desk: the form that describes one, its preview, and saved profiles; without scripts."""

import re
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from console.bank.csv_form import COLUMNS, DAYS, DELIMITERS, ENCODINGS, NEW, TEXTS, header_of
from deploy.local.waiting import wait_until
from services.bank.files import csv_files
from tests.bank.test_profiles import AMERICAN, BRITISH, FRENCH, SPARKASSE, TABS
from tests.console.conftest import Open, Staff
from tests.console.house import Person, text_of
from tests.console.looks import looks_right

READ_SECONDS = 30
GERMAN = {"day": "2", "amount": "9", "currency": "10", "account": "1", "text": "5", "counterparty_name": "6"}


@pytest.fixture(scope="module")
def operator(staff: Staff) -> Person:
    return staff("desk")


def uploaded(operator: Person, content: str, encoding: str = "cp1252", **fields: str) -> str:
    """The path to which the desk leads after the upload of a file."""
    mark = f"\n\n{uuid4().hex}" if not fields else ""
    file = ("lines.csv", (content + mark).encode(encoding))
    return urlsplit(operator.post("/bank/files", fields, files={"file": file}).url).path


def taken(operator: Person, path: str) -> str:
    wait_until(
        lambda: "new, imported" in text_of(operator.get(path)), "the file", timeout_seconds=READ_SECONDS
    )
    return text_of(operator.get(path))


def account_number() -> str:
    return f"CSV{uuid4().hex[:10].upper()}"


def test_the_form_offers_what_the_service_knows() -> None:
    assert set(COLUMNS) < set(csv_files.COLUMNS)
    assert set(ENCODINGS) < set(csv_files.ENCODINGS)
    assert tuple(DELIMITERS) == csv_files.DELIMITERS
    assert {form for form in DAYS if csv_files._keeps_days(form)} == set(DAYS)
    assert set(NEW) == set(TEXTS)


@pytest.mark.parametrize(
    ("content", "row"), [(SPARKASSE, "1"), (FRENCH, "2"), (BRITISH, "1"), (AMERICAN, "1"), (TABS, "")]
)
def test_the_row_with_the_names_of_columns_is_guessed(content: str, row: str) -> None:
    rows = csv_files.first_rows(content.encode(), *csv_files.guessed_form(content.encode()), most=15)
    assert header_of(rows) == row


def test_a_file_is_described_once_and_later_ones_are_imported_by_its_profile(
    operator: Person, staff: Staff, open_page: Open, tmp_path: Path
) -> None:
    account, name = account_number(), f"bank-{uuid4().hex[:8]}"
    content = SPARKASSE.replace("DE89370400440532013000", account)
    page: Page = staff.page(open_page, "desk")
    page.goto(f"{operator.url}/bank/files")
    file = tmp_path / "umsaetze.csv"
    file.write_text(content, encoding="cp1252")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("How to read umsaetze.csv")
    expect(page.get_by_label("Encoding")).to_have_value("cp1252")
    expect(page.get_by_label("Between cells")).to_have_value(";")
    expect(page.get_by_label("Row with the names of columns")).to_have_value("1")
    expect(page.get_by_role("cell", name="Jürgen Groß")).to_be_visible()
    page.get_by_role("button", name="Show the lines").click()
    for field, fault in {
        "day": "A column for the day is needed.",
        "amount": "Amount: a column for the amount, or those for debit and credit, are needed.",
        "one_currency": "A currency of three capital letters, or a column for it, is needed.",
        "one_account": "Account: an account of 1 to 64 letters and digits, or a column for it, is needed.",
    }.items():
        expect(page.locator(f".field:has(#{field}) .fault")).to_have_text(fault)
    for field, column in GERMAN.items():
        page.locator(f"#{field}").select_option(column)
    page.get_by_role("button", name="Show the lines").click()
    expect(page.get_by_role("alert")).to_contain_text("Line 2: this is no day as 31.12.2026: '28.11.26'.")
    page.get_by_label("The last day of 2026 is").select_option("31.12.26")
    page.get_by_role("button", name="Show the lines").click()
    first = page.get_by_role("row").filter(has_text="1,234.56").first
    expect(first).to_contain_text("2026-11-28")
    expect(first).to_contain_text("Bestellung 7K3M 9QT9")
    expect(page.get_by_role("row").filter(has_text="−4.90").first).to_contain_text("Entgelte")
    looks_right(page, "bank-csv")
    page.get_by_label("Name of the profile").fill("two words")
    page.get_by_role("button", name="Save, and import the file").click()
    expect(page.locator(".field:has(#name) .fault")).to_contain_text("Name: expected 1 to 64 characters")
    page.get_by_label("Name of the profile").fill(name)
    page.get_by_role("button", name="Save, and import the file").click()
    expect(page.get_by_role("status").first).to_contain_text("The profile is saved")
    assert "2 lines, 2 of them new" in taken(operator, urlsplit(page.url).path)

    later = content.replace("28.11.26", "29.11.26").replace("27.11.26", "29.11.26")
    path = uploaded(operator, later, profile_name=name)
    assert not path.endswith("/csv") and "2 lines, 2 of them new" in taken(operator, path)
    wrong = operator.post(
        "/bank/files", {"profile_name": "no-such"}, files={"file": ("a.csv", later.encode())}
    )
    assert "No profile of CSV files has this name" in text_of(wrong)

    page.goto(f"{operator.url}/bank/profiles")
    looks_right(page, "bank-profiles")
    row = page.locator("[data-row]").filter(has_text=name)
    row.get_by_text("Delete", exact=True).click()
    row.get_by_role("button", name="Delete the profile").click()
    expect(page.get_by_role("status")).to_contain_text("The profile is deleted.")
    assert name not in text_of(operator.get("/bank/profiles"))


def test_a_file_without_a_profile_is_previewed_and_imported_by_a_saved_one(operator: Person) -> None:
    name, mark = f"tabs-{uuid4().hex[:8]}", uuid4().hex
    path = uploaded(operator, TABS.replace("fee", f"fee {mark}"), "utf-16")
    columns = {"day": "1", "counterparty_name": "2", "text": "3", "amount": "4", "currency": "5"}
    shape = {"delimiter": "\t", "encoding": "utf-16", "day_form": "%d %b %Y", "decimal_mark": "."}
    form = dict.fromkeys(TEXTS, "") | columns | shape
    form |= {"one_account": account_number(), "rows_below": "1", "name": name}
    seen = re.sub("[\u2068\u2069]", "", text_of(operator.post(path, form | {"act": "preview"})))
    assert "2026-11-28 1,234.56 GBP Jane Roe order 7K3M9QT9" in seen and f"− 4.50 GBP fee {mark}" in seen
    kept = urlsplit(operator.post(path, form | {"act": "save"}).url).path
    taken(operator, kept)

    other = uploaded(operator, TABS.replace("fee", f"fee {uuid4().hex}"), "utf-16")
    shown = operator.post(other, {"act": "preview", "profile_name": name})
    assert "2026-11-28 1,234.56 GBP" in text_of(shown)
    assert re.search(rf'<option value="{name}" selected>', shown.text)
    assert "2 lines, 1 of them new" in taken(
        operator, urlsplit(operator.post(other, {"act": "import", "profile_name": name}).url).path
    ), "the first line came before"
    refused = operator.post(other, {"act": "preview", "profile_name": "no-such"})
    assert "No profile of CSV files has this name" in text_of(refused)
    for change, problem in {
        ("header", "99"): "first rows gives a line",
        ("day", "77"): "has 5 cells, fewer",
    }.items():
        odd = operator.post(other, form | {"rows_below": "x", "act": "preview"} | dict([change]))
        assert problem in text_of(odd)


def test_desk_and_admin_alone_describe_files_and_delete_profiles(operator: Person, staff: Staff) -> None:
    path, reader = uploaded(operator, BRITISH), staff("auditor")
    assert "How to read lines.csv" in text_of(staff("admin").get(path))
    assert "Say how to read it" in operator.get(path.removesuffix("/csv")).text
    assert "Say how to read it" not in reader.get(path.removesuffix("/csv")).text
    assert reader.get(path).status_code == 403
    assert reader.post(path, {"act": "import"}).status_code == 403
    assert "Delete the profile" not in reader.get("/bank/profiles").text
    assert reader.post("/bank/profiles", {"name": "x"}).status_code == 403
