"""Backups: making them, restoring and verifying them, and the schedule that does it.

BackupPart of the only place that knows which parts the program is made of."""
