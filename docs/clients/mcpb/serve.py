"""Starts handrail; its arguments are in the manifest."""

from handrail.__main__ import main

main()
