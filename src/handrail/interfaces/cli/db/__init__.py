"""`handrail db`: the journal as its operator sees it."""
