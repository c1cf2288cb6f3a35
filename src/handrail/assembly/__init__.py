"""Assembly: the only place that knows which parts the program is made of.

Opens what a caller needs and closes it again; nothing is decided here."""
