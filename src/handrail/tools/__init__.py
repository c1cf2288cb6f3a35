"""Tools that plans can call: built-in tools, tools of plugins and of MCP servers, and the registry of all of them."""
