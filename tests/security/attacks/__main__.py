"""Writes the table of docs/security.md."""

from tests.security.attacks.document import DOCUMENT, documented

DOCUMENT.write_text(documented(DOCUMENT.read_text()))
