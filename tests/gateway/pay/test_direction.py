"""What others have written is read in its own direction, on pages of either: seen by where its letters are."""

import pytest

from tests.gateway.desk import Desk
from tests.gateway.pay.conftest import Open

# By first and last letter, both of which take the direction of what is around them.
WESTERN = "<b>{}</b>"
ARABIC = "«متجر {}»!"

# Every place where one of the texts stands: the text, and whether its first letter is left of its last.
PLACES = """(texts) => {
    const places = [];
    const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (nodes.nextNode()) {
        const node = nodes.currentNode;
        const left = (index) => {
            const letter = document.createRange();
            letter.setStart(node, index);
            letter.setEnd(node, index + 1);
            return letter.getBoundingClientRect().left;
        };
        for (const text of texts) {
            const start = node.data.indexOf(text);
            if (start >= 0 && node.parentElement.checkVisibility())
                places.push([text, left(start) < left(start + text.length - 1)]);
        }
    }
    return places;
}"""


@pytest.mark.parametrize(
    ("written", "is_western"), [(WESTERN, True), (ARABIC, False)], ids=["western", "arabic"]
)
def test_every_text_is_read_in_its_own_direction(
    open_page: Open, desk: Desk, currency: str, written: str, is_western: bool
) -> None:
    merchant, purpose, name, bank = texts = [written.format(number) for number in range(1, 5)]
    method = desk.method(currency, name=name)
    desk.requisite(method, bank=bank)
    shop = desk.shop(currency, name=merchant, allowed_methods=[method])
    _, paid, marked, done = invoices = [shop.create(purpose=purpose) for _ in range(4)]
    desk.choose(paid["invoice_id"], method)
    desk.mark_paid(marked["invoice_id"], method)
    desk.confirm(done["invoice_id"], method)
    for language in ("en", "ar"):
        page = open_page(locale=language)
        seen: set[str] = set()
        for invoice in invoices:
            page.goto(invoice["payment_link"])
            assert page.title().endswith(f" · \u2068{merchant}\u2069")
            for text, reads_to_the_right in page.evaluate(PLACES, texts):
                assert reads_to_the_right is is_western, f"{text} in {language}: {page.title()}"
                seen.add(text)
        assert seen == set(texts)
