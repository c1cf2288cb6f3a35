"""What every command shares: answers, tables, times, findings, questions, completion."""
