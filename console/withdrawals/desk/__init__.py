"""Parts for operators alone: steps to the transaction, new withdrawals, methods, and what a second person compares."""
