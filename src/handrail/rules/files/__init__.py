"""Rules about the project's files and its git history."""
