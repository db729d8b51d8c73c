"""People and their roles: the staff on the desk, the members of the own merchant on the dashboard."""
