"""Reports: a run in one file to keep, for people who have no handrail: HTML, and Markdown for a comment."""
