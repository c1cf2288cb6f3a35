"""The PostgreSQL store: the journal of many machines, in lanes."""
