"""Importers of other workflow formats: the protocol, the installed ones, and converting a file."""
