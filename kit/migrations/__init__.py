"""Alembic's environment and file template, shared by all services; `kit.migrate` is the way in."""
