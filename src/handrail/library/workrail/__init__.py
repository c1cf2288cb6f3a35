"""WorkRail: recognises and converts workflow files of that format (schema v0.0.1 to v0.3.0)."""
