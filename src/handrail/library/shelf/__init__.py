"""The workflows of all folders: found by id, listed, searched."""
