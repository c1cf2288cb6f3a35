"""What a run does next: ready steps, loop rounds, retries, due times, undo order, circuit breakers."""
