"""The outbox of each store: what waits for channels, and how far the journal was read for each."""
