"""Acts (who changed what), their verification, and requests for a second person.

An act is written in the transaction of its change (`acts`). A worker chains acts off the hot path (`chaining`), and
services keep the heads of each other's chains (`heads`), so that neither a changed act nor a missing one goes unnoticed
(`checking`). A request is a change that waits for another author (`approvals`).
"""
