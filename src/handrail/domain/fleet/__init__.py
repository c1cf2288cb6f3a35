"""The fleet: what a node is, and which node may do what. Pure."""
