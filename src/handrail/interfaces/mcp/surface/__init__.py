"""The surface: the tools, resources and prompts that handrail offers over MCP, independent of any protocol library."""
