"""What is known: workflows and plans as files, read, checked and resolved."""
