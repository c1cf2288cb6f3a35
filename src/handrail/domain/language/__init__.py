"""The small, safe, typed language that authors write in definitions: expressions and templates."""
