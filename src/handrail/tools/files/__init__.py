"""`file.*`: files inside the project, with undo."""
