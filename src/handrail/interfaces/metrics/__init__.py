"""Metrics: `/metrics` for Prometheus, from the journal and from this process."""
