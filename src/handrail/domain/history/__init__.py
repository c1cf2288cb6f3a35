"""The history of a run, read from its events: where its time went, its story, and how two runs differ."""
