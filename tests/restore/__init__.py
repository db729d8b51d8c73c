"""Backups, tried: base backup and WAL archive under load, a loss, the restore to a point in time, the verification.

Each round compares what is there afterwards with the journal of what was answered before: `make restore`.
"""
