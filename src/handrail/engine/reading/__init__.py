"""Read models: runs, steps, the ledger, tool statistics. Nothing is written here."""
