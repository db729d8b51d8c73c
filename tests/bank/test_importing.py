"""Files are taken whole or refused whole, each line once; lines that SQL wrote are named and not used."""

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from kit.base.ids import new_id
from services.bank.domain.proposals import Deal, ImportState, LineState, Proposal, Tier
from services.bank.files.values import FILE_MOST_BYTES
from services.bank.operations import importing, lines
from services.bank.operations.importing import ImportStory
from services.bank.operations.proposing import Again
from services.bank.store.books import PARTS
from services.bank.store.lines import add_matches, replace_matches, save_proposals
from services.bank.store.views import LineView, MatchView
from services.bank.wiring import Deps
from tests.bank.shapes import balance, camt, end_to_end, entry, ustrd
from tests.support.acting import refusal

CALLERS = 20
PENDING = "<Cd>PDNG</Cd>"


def imported(bank: Deps, content: str | bytes) -> ImportStory:
    """The import of a file after the worker has read it."""
    whole = content.encode() if isinstance(content, str) else content
    kept = importing.import_file(bank, content=whole, file_name="statement.xml", profile="")
    while importing.read_next(bank):
        pass
    return importing.get_import(bank, import_id=str(kept.file.id))


def stored(bank: Deps, account: str) -> Sequence[LineView]:
    found = {"state": None, "tier": None, "deal_id": "", "limit": 0, "after_line_id": ""}
    return lines.list_lines(bank, account=account, **found)  # type: ignore[arg-type]  # the values of all


def of(account: str, *entries: str, **parts: str) -> str:
    return camt(*entries, account=f"<Othr><Id>{account}</Id></Othr>", **parts)


def test_the_same_file_again_changes_nothing(bank: Deps) -> None:
    file = of("A1", entry("10.00"), entry("20.00", mark="DBIT"))
    first, again = imported(bank, file), imported(bank, file)
    assert (first.file.state, first.file.lines, first.file.new_lines) == (ImportState.TAKEN, 2, 2)
    assert again == first
    assert {line.state for line in stored(bank, "A1")} == {LineState.WAITING, LineState.OUTGOING}


def test_proposals_are_saved_for_lines_that_nobody_has_decided(bank: Deps) -> None:
    imported(bank, of("A9", entry("10.00"), entry("20.00"), entry("30.00")))
    found = {f"{line.amount:.0f}": line.id for line in stored(bank, "A9")}
    lines.ignore_line(bank, line_id=str(found["30"]), reason="Our own transfer")
    deal = Deal(
        id=uuid.uuid4(),
        invoice_id=uuid.uuid4(),
        reference="",
        account="A9",
        currency_code="EUR",
        amount=Decimal("10.50"),
        is_open=True,
        is_paid=False,
        is_linked=False,
        sender_name="",
        created_at=bank.clock.now(),
    )
    fitting = Proposal(tier=Tier.AMOUNT_DIFFERS, deal=deal)
    for proposals in (
        {found["20"]: Proposal(tier=Tier.NONE)},
        {found["10"]: fitting, found["20"]: Proposal(tier=Tier.NONE), found["30"]: fitting},
        {},
    ):
        with bank.db.transaction() as tx:
            save_proposals(tx, proposals)
    assert {
        f"{line.amount:.0f}": (line.state, line.tier, line.deal_id, line.deal_amount, line.is_payable)
        for line in stored(bank, "A9")
    } == {
        "10": (LineState.PROPOSED, Tier.AMOUNT_DIFFERS, deal.id, Decimal("10.50"), True),
        "20": (LineState.UNMATCHED, Tier.NONE, None, None, True),
        "30": (LineState.IGNORED, None, None, None, False),
    }


def test_all_lines_that_wait_for_an_operator_are_looked_at_again_by_turns(bank: Deps) -> None:
    imported(bank, of("A18", *(entry(f"{amount}.00") for amount in range(10, 17))))
    ids = {line.id for line in stored(bank, "A18")}
    with bank.db.transaction() as tx:
        save_proposals(tx, dict.fromkeys(ids, Proposal(tier=Tier.NONE)))
    again, seen = Again(most=2), []
    for _ in range(20):
        newest, older = again.turn(bank)
        assert len(newest) == 2
        seen += [line.id for line in older]
    assert ids <= {line.id for line in newest} | set(seen)
    assert len(seen) > len(set(seen)), "it begins anew"


def test_lines_of_a_later_file_that_are_known_are_not_added(bank: Deps) -> None:
    imported(bank, of("A2", entry("10.00"), entry("10.00")))
    later = imported(bank, of("A2", entry("10.00"), entry("10.00"), entry("11.00")))
    assert (later.file.lines, later.file.new_lines) == (3, 1)
    assert sorted(f"{line.amount:.2f}" for line in stored(bank, "A2")) == ["10.00", "10.00", "11.00"]


def test_a_pending_line_becomes_the_booked_one(bank: Deps) -> None:
    imported(bank, of("A3", entry("10.00", status=PENDING)))
    assert [line.status for line in stored(bank, "A3")] == ["pending"]
    imported(bank, of("A3", entry("10.00")))
    assert [line.status for line in stored(bank, "A3")] == ["booked"]


def test_a_pending_line_that_is_booked_with_other_blanks_and_references_can_be_used(bank: Deps) -> None:
    imported(bank, of("A14", entry("10.00", ustrd("SVWZ+ order 7KQ4-M2XB"), status=PENDING)))
    details = end_to_end("7KQ4M2XB") + ustrd("SVWZ+order 7KQ4M2XB")
    booked = entry("10.00", details, after="<ValDt><Dt>2026-01-03</Dt></ValDt>")
    assert imported(bank, of("A14", booked)).file.new_lines == 1
    (line,) = stored(bank, "A14")
    assert (line.status, line.text, line.reference_texts) == ("booked", "SVWZ+order 7KQ4M2XB", "7KQ4M2XB")
    assert lines.get_line(bank, line_id=str(line.id)).valued_on == date(2026, 1, 3)
    assert problems(bank) == set()


def test_the_day_of_a_line_is_sealed_and_kept_once_it_is_booked(bank: Deps) -> None:
    imported(bank, of("A15", entry("10.00", status=PENDING)))
    moved = text("UPDATE lines SET booked_on = '2026-01-09' WHERE account = 'A15'")
    with bank.db.transaction() as tx:
        tx.execute(moved)
    assert problems(bank) == {"seal"}
    imported(bank, of("A15", entry("10.00")))
    assert problems(bank) == set()
    with pytest.raises(DBAPIError, match="keep their value"), bank.db.transaction() as tx:
        tx.execute(moved)


@pytest.mark.parametrize(
    "content",
    [
        b"not a statement",
        of("A4", entry("10.00"), balances=balance("OPBD", "1.00") + balance("CLBD", "12.00")).encode(),
        of("A4", entry("10.00")).encode()[:-40],
        b'<!DOCTYPE a [<!ENTITY b "c">]>' + of("A4", entry("10.00")).encode(),
    ],
    ids=["no statement", "sums", "half", "entities"],
)
def test_a_file_that_is_refused_leaves_no_line(bank: Deps, content: bytes) -> None:
    refused = imported(bank, content)
    assert refused.file.state is ImportState.REFUSED
    assert refused.file.problem
    assert not refused.statements and not stored(bank, "A4")


@pytest.mark.parametrize(
    "content",
    [
        of("Ж" * 10, entry("10.00")),
        of("A" * 100, entry("10.00")),
        of("A9", entry("10.00", days="<BookgDt><Dt>9999-12-31</Dt></BookgDt>")),
        of("A9", entry("10.001", currency="KWD")),
    ],
    ids=["account", "long account", "day", "three decimals"],
)
def test_a_file_that_no_table_takes_does_not_hold_up_the_next(bank: Deps, content: str) -> None:
    assert imported(bank, content).file.state is ImportState.REFUSED
    assert imported(bank, of("A10", entry("10.00"))).file.state is ImportState.TAKEN


def test_texts_of_any_length_and_alphabet_are_stored(bank: Deps) -> None:
    details = "".join(f"<Strd><CdtrRefInf><Ref>{'€' * 130}{n}</Ref></CdtrRefInf></Strd>" for n in range(90))
    wide = entry("10.00", f"<RmtInf><Ustrd>{'𝄞' * 5000}</Ustrd>{details}</RmtInf>")
    assert imported(bank, of("A11", wide)).file.state is ImportState.TAKEN
    assert problems(bank) == set()


def test_a_file_that_sql_changed_is_refused(bank: Deps) -> None:
    kept = importing.import_file(bank, content=of("A12", entry("1.00")).encode(), file_name="f", profile="")
    with bank.db.transaction() as tx:
        tx.execute(text("UPDATE imports SET state = 'waiting' WHERE id = :id"), {"id": kept.file.id})
        forged = "INSERT INTO imports SELECT :new, digest, file_name, '{}', content, state, format, problem, lines,"
        tx.execute(
            text(f"{forged} new_lines, imported_at, seal FROM imports WHERE id = :id"),
            {"id": kept.file.id, "new": new_id()},
        )
    while importing.read_next(bank):
        pass
    states = {each.file.profile: each.file for each in importing.list_imports(bank, limit=2)}
    assert "past the service" in (states["{}"].problem or "")
    assert states[""].state is ImportState.TAKEN


def test_a_csv_file_is_read_by_its_profile_and_a_wrong_profile_is_named_at_once(bank: Deps) -> None:
    profile = '{"columns": {"day": "Date", "amount": "Sum"}, "currency": "EUR", "account": "A13"}'
    content = b"Date;Sum\n28.11.2026;1.234,50\n28.11.2026;-3,00\n"
    importing.import_file(bank, content=content, file_name="l.csv", profile=profile)
    while importing.read_next(bank):
        pass
    assert sorted(f"{line.amount:.2f} {line.direction}" for line in stored(bank, "A13")) == [
        "1234.50 credit",
        "3.00 debit",
    ]
    for wrong in ("{", '{"columns": {"day": 1}}', '{"columns": {"colour": 1}}'):
        refused = refusal(importing.import_file, bank, content=content, file_name="l.csv", profile=wrong)
        assert refused.reason == "VALIDATION_ERROR"
        assert refused.metadata["field"].startswith("profile")


def test_an_empty_and_a_large_file_are_refused_at_once(bank: Deps) -> None:
    for content in (b"", b"x" * (FILE_MOST_BYTES + 1)):
        refused = refusal(importing.import_file, bank, content=content, file_name="a", profile="")
        assert refused.reason == "BANK_FILE_REFUSED"


def test_a_gap_between_two_statements_is_shown(bank: Deps) -> None:
    def day(number: int, opening: str, closing: str, amount: str) -> str:
        on = f"2026-03-0{number}"
        sums = balance("OPBD", opening, day=on) + balance("CLBD", closing, day=on)
        return of("A5", entry(amount, days=f"<BookgDt><Dt>{on}</Dt></BookgDt>"), balances=sums)

    files = [
        day(1, "0.00", "10.00", "10.00"),
        day(2, "10.00", "15.00", "5.00"),
        day(4, "20.00", "21.00", "1.00"),
    ]
    imports = [imported(bank, file).file for file in files]
    second_of_the_day = day(2, "15.00", "16.00", "1.00").replace("<ElctrncSeqNb>12", "<ElctrncSeqNb>13")
    imports += [imported(bank, file).file for file in (f"{files[1]} ", second_of_the_day)]

    def gaps() -> list[bool]:
        stories = (importing.get_import(bank, import_id=str(each.id)) for each in imports)
        return [each.has_gap for story in stories for each in story.statements]

    assert gaps() == [False, False, True, False, False]
    imported(bank, day(3, "16.00", "20.00", "4.00"))
    assert gaps() == [False] * 5, "the missing file came"


def test_twenty_imports_and_twenty_workers_store_each_line_once(bank: Deps) -> None:
    files = [of("A6", *(entry(f"{n}.00") for n in range(1, 4 + which % 3))) for which in range(CALLERS)]

    def take(file: str) -> None:
        importing.import_file(bank, content=file.encode(), file_name="f", profile="")
        importing.read_next(bank)

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(take, files))
    while importing.read_next(bank):
        pass
    assert sorted(int(line.amount) for line in stored(bank, "A6")) == [1, 2, 3, 4, 5]


def test_a_line_is_ignored_with_a_reason_and_put_back(bank: Deps) -> None:
    imported(bank, of("A7", entry("10.00")))
    (line,) = stored(bank, "A7")
    lines.ignore_line(bank, line_id=str(line.id), reason="our own transfer")
    (ignored,) = stored(bank, "A7")
    assert (ignored.state, ignored.reason) == (LineState.IGNORED, "our own transfer")
    assert refusal(lines.ignore_line, bank, line_id=str(line.id), reason="x").reason == "BANK_LINE_CONFLICT"
    lines.restore_line(bank, line_id=str(line.id))
    assert [line.state for line in stored(bank, "A7")] == [LineState.WAITING]
    assert problems(bank) == set()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("state = 'ignored', reason = 'by SQL'", "act"),
        ("status = 'reversed'", "seal"),
        ("state = 'matched'", "paid"),
    ],
)
def test_a_line_that_sql_changed_is_named(bank: Deps, change: str, field: str) -> None:
    imported(bank, of("A8", entry("10.00")))
    (line,) = stored(bank, "A8")
    before = {"state": line.state, "reason": line.reason, "status": line.status, "id": line.id}
    with bank.db.transaction() as tx:
        tx.execute(text(f"UPDATE lines SET {change} WHERE id = :id"), before)
    found = problems(bank)
    with bank.db.transaction() as tx:
        back = "UPDATE lines SET state = :state, reason = :reason, status = :status WHERE id = :id"
        tx.execute(text(back), before)
    assert found == {field}
    assert problems(bank) == set()


def test_a_balance_that_sql_wrote_is_named(bank: Deps) -> None:
    sums = balance("OPBD", "0.00") + balance("CLBD", "10.00")
    kept = imported(bank, of("A16", entry("10.00"), balances=sums))
    assert problems_of(bank, "statements") == set()
    forged = (
        "INSERT INTO statements SELECT gen_random_uuid(), import_id, account, currency_code, number, opening, 11,"
        " opened_on, closed_on, seal FROM statements WHERE import_id = :id"
    )
    with bank.db.transaction() as tx:
        tx.execute(text(forged), {"id": kept.file.id})
    assert problems_of(bank, "statements") == {"seal"}


def problems(bank: Deps) -> set[str]:
    return problems_of(bank, "lines")


def problems_of(bank: Deps, table: str) -> set[str]:
    """The fields of the table's rows that `fiatgate verify` would name."""
    first, last = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
    found = set()
    (part,) = (each for each in PARTS if each.table == table)
    if part.key_type == "text":
        first, last = "", "~"
    with bank.db.transaction() as tx:
        for follows in part.follows:
            if callable(follows):
                found |= {field for _, field, _, _ in follows(tx, first, last)}
            else:
                rows = tx.execute(text(follows), {"first": first, "last": last})
                found |= {row.field for row in rows}
    return found


def test_a_repair_puts_the_payments_of_a_restored_invoices_in_the_place_of_those_that_it_lost(
    bank: Deps,
) -> None:
    imported(bank, of("A20", *(entry(f"{amount}.00") for amount in (10, 20, 30))))
    by_amount = {int(line.amount): line for line in stored(bank, "A20")}

    def match(number: int, amount: int) -> MatchView:
        line = by_amount[amount]
        return MatchView(10**15 + number, line.id, uuid.uuid4(), uuid.uuid4(), line.amount, bank.clock.now())

    kept, lost, given_anew = match(1, 10), match(2, 20), match(2, 30)
    with bank.db.transaction() as tx:
        add_matches(tx, [kept, lost])
        replace_matches(tx, kept.number - 1, [kept], last=kept.number)
        replace_matches(tx, kept.number, [given_anew])
    assert {int(line.amount): (line.state, line.matches) for line in stored(bank, "A20")} == {
        10: (LineState.MATCHED, (kept,)),
        20: (LineState.WAITING, ()),
        30: (LineState.MATCHED, (given_anew,)),
    }
    assert problems(bank) == set()
