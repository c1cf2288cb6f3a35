"""Checking outputs: the gate that applies rules, and the protocol of a rule."""
