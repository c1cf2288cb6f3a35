"""Notices on their way: the journal is followed, what is reported is kept in the store, and sent until it arrives."""
