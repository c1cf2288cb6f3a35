"""Health: checks of this machine and of an open program, for `doctor`, the console and `/healthz`."""
