"""Runs as MCP clients follow them: lists, changes, tasks, pages of events."""
