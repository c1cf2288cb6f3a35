"""Retention: which ended runs leave the journal, and which open runs are abandoned."""
