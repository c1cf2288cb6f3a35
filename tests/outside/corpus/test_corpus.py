"""The gates on a corpus of real packages: no honest submission is refused, and no lie is accepted."""
