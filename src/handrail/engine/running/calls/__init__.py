"""Calling tools for a run: an attempt and its answer, the limits that postpone it, and the calls in progress."""
