"""Where commands run: bubblewrap with limits and a system call filter, or unconfined where a person allows it."""
