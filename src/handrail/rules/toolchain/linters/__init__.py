"""Linters: which one a project uses, and which of its findings are about what has changed."""
