"""Metrics: which figures there are, and how the journal's events add up to them. Pure."""
