"""Secrets: what they look like, how they are referenced, and how they are removed from text."""
