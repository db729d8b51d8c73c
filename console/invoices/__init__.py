"""Invoices: the list, the timeline of one, the search over all things, and the switch of new deals."""
