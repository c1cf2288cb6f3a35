"""Retention: ended runs leave the journal for archive files, and abandoned runs are ended."""
