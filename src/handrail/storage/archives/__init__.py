"""Archived runs: their files, what is read from them, and those of the memory store."""
