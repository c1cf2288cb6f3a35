"""Measuring: what the journal adds up to, and the little that only a process itself can know."""
