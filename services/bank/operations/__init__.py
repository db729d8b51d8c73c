"""One function for each call and each step of a worker: transaction, rules, acts."""
