"""Invoices on both surfaces: the list, and the timeline of one; `desk` has what only operators get."""
