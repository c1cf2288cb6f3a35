"""Workflows and plans as values: steps, order, effects, versions, durations."""
