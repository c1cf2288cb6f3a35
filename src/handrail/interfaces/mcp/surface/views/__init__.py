"""What people see of a run beside an agent's answer: the link to the console, and a page in the client's own window."""
