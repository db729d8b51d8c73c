"""Alembic runs this file for each command. `kit.db.migrate` passes the connection and, for comparisons, the models."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes.get("metadata"),
    transaction_per_migration=True,
    compare_type=True,
    compare_server_default=True,
)

with context.begin_transaction():
    context.run_migrations()
