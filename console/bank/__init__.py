"""Bank: files of banks, their lines, and the deals that they may have paid."""
