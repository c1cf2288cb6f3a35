"""Processes, pipes and HTTP connections to tool servers."""
