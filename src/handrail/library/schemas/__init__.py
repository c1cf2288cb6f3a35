"""JSON Schemas: the shipped schema of definitions, schemas of authors, and errors in plain words."""
