"""The MCP tools: arguments, catalog, and a handler for each."""
