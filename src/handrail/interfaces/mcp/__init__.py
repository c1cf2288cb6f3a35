"""MCP: handrail as a server for agents. The surface imports no protocol library; the shell connects it to the SDK."""
