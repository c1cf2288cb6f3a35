"""Clients: the programs that agents live in, how handrail gets into their settings, and whether it works there."""
