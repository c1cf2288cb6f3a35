"""What is true: values and pure functions. No await, clock, chance, files or logs."""
