"""Runs without a journal, a clock or tools: dry runs, scripted tests and path exploration of workflows."""
