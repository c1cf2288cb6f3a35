"""What tool servers say: schemas, results, questions, undo maps. Untrusted, checked within limits."""
