"""This process as a node of the fleet, and the nodes that a store knows."""
