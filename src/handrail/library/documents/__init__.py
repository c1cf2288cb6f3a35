"""Documents: YAML and JSON text read into data in which every value knows its position."""
