"""Alembic's environment and template, shared by all services, and steps that migrations share (`steps`, `guards`).

`kit.db.migrate` runs them.
"""
