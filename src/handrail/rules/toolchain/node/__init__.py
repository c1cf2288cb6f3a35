"""Test runners of Node: how scripts call them, and the test that must fail in each."""
