"""What can be called: the built-in tools, those of plugins, and the registry of them all."""
