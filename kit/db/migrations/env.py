"""Alembic runs this file for each command. `kit.db.migrate` passes the connection and, for comparisons, the models."""

from alembic import context

from kit.db.migrate import whole_tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes.get("metadata"),
    transaction_per_migration=True,
    compare_type=True,
    compare_server_default=True,
    include_name=whole_tables(context.config.attributes["connection"]),
)

with context.begin_transaction():
    context.run_migrations()
