"""Comparing with an older state of the project: tests that were lost or emptied, settings that were made milder."""
