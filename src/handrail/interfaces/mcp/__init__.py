"""MCP: handrail as a server that agents talk to. The surface knows no protocol library; the shell is its only user."""
