"""Executing runs: the worker, one conductor for each run, the calls of tools, leases, control."""
