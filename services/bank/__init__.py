"""The lines of the operator's bank accounts, and the deals that they may have paid.

Owns: files of banks, their statements and lines; keys of connectors, which post lines; a proposal for each line; lines
that an operator ignores.
Announces nothing; consumes nothing.
Calls: invoices, for deals that fit lines and for the payments by lines that it has recorded.
Does not own: which line paid which deal, which invoices records with the deal's step; corrections (withdrawals).
"""
