"""What is installed on this machine: interpreters, environments, packages, caches. Nothing is run to find it."""
