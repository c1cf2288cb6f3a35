"""Checks of a definition beyond its structure: one kind of finding in each file, combined in whole.py."""
