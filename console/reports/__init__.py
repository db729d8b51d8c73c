"""Reports: what the business earned, by day, merchant, method or currency, with the same numbers as a file."""
