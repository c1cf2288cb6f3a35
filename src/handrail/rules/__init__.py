"""Rules: what is checked of an output. One file a family; a rule is a plain function of values."""
