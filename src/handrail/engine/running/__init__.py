"""Executing runs: the worker, one conductor for each run, attempts, limits, leases, control."""
