"""The surface: what an MCP server of ours offers, as data and functions that know no protocol library."""
