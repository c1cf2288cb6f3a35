"""Backups: what a manifest says, and which backups a schedule keeps."""
