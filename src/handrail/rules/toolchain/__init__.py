"""Tool chains: how projects are built, tested and linted, one file for each language."""
