"""What is kept: the only room that knows SQL, keys and checkpoint files."""
