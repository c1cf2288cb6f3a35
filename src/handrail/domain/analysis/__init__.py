"""What a definition means beyond its structure: a family of findings in each file, all of them in whole.py."""
