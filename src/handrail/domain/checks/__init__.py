"""Checks of step outputs: rules as values, findings, and the verdict on an output."""
