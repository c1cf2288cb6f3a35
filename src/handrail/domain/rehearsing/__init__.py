"""Rehearsing: runs workflows without calling anything, either by a script or along every possible path."""
