"""Rehearsing: walks through workflows in which nothing is called: with a script, or along every path there is."""
