"""Archived runs of the SQLite store, and giving their space back to the disk."""
