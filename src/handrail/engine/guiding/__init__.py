"""Guiding agents: the next step of a run, and what an agent submits for it."""
