"""The SQLite store: one writer thread with group commit, several readers, migrations."""
