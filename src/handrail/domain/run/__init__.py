"""One run: its state folded from events, its statuses, the commands it takes and the decisions on them."""
