"""Channels: how a notice gets to a receiver, by kind."""
