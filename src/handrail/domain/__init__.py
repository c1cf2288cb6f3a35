"""What is true: values and pure functions. No await, clock, randomness, files or logging."""
