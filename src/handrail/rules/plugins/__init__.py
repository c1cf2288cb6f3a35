"""Rules of installed packages: found by metadata, each run in a process of its own."""
