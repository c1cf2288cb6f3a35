"""MCP over streamable HTTP: the server behind `handrail serve`."""
