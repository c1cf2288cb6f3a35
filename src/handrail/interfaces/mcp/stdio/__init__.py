"""MCP over stdio: a small front between the client's pipe and the SDK, which answers before the SDK is loaded."""
