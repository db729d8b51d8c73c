"""One service's database.

`database` has sessions and transactions, `prepared` the statements that every request waits for, `rows` rows as
dataclasses, `migrate` and `schema` the versions of the tables, `rights` and `migrations` the rights and guards in the
database, `books` the audit of its rows, `alone` work that one process at a time may do.
"""
