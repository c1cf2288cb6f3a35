"""The kinds of witnesses: a file, a git repository, an HTTPS endpoint, syslog."""
