"""Other MCP servers as tools: what is declared, the connection to each, and how their tools answer."""
