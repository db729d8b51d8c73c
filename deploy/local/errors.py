"""What the person who typed `make run` has to be told."""

from __future__ import annotations


class CannotStart(Exception):
    """The stack did not come up; the text says why, in words."""
