"""MCP over streamable HTTP: `handrail serve`."""
