"""handrail: guide, run and remember, over one journal."""
