"""Notices of a home: what its config.toml says, and the task that keeps and sends them."""
