"""Starts handrail; what it is asked to do stands in the manifest."""

from handrail.__main__ import main

main()
