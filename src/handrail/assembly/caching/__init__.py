"""Caches: the shared level, what all processes counted, and what `handrail cache` shows, warms and clears."""
