"""Archived runs of the PostgreSQL store."""
