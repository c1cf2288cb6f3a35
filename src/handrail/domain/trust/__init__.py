"""What a project may say for itself, and what counts only once a person has trusted it."""
