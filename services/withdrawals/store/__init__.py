"""Every query of the withdrawals service, named by its result. No decisions are made here.

- `ledger`: accounts, transfers, balances
- `statements`: transfers of a merchant, an invoice or a withdrawal, and their sums
- `daily`: balances at the end of days
- `other_days`: credits whose invoice was paid on another day
- `withdrawals`: withdrawals and their methods
- `checks`: faults in the books
- `views`: the results of queries
"""
