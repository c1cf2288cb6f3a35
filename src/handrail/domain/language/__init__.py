"""The small typed language of definitions: expressions and templates."""
