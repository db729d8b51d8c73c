"""Every query of the withdrawals service, named by what it returns. Nothing here decides.

- `ledger`: accounts, transfers, balances
- `withdrawals`: withdrawals and their methods
- `checks`: what is wrong with the books
"""
