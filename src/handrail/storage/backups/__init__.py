"""Backups as files: packed, encrypted, copied out of a database and back."""
