"""Traces: in which trace a run is, which spans its events add up to, and what they are called. Pure."""
