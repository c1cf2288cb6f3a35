"""Health: what works, what does not, since when, and how to fix it. Pure; the checks are made in interfaces/health/."""
