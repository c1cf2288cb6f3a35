"""Tool chains: how projects of each language are built, tested and linted, one file a language."""
