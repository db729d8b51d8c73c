"""The error that is shown to the person who typed `make run`."""

from __future__ import annotations


class CannotStart(Exception):
    """The stack did not start; the text has the reason, for people."""
