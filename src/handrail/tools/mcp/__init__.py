"""MCP servers as tools: their declarations, the connection to each, and the results of their tools."""
