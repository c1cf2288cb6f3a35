"""Rules about the submitted output alone: text, values, and rules made of rules."""
