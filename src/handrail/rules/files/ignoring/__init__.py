"""Files that git ignores."""
