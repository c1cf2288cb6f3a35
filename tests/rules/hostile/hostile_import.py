"""A module that can't be imported."""

raise OSError("not today")
