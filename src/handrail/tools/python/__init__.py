"""Python functions as tools, and the tools of installed packages."""
