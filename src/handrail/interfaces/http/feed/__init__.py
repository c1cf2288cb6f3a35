"""The live feed: the journal's own events, as they are stored, for any number of readers."""
