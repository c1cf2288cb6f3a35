"""What listens on a port: address, connections, limits, the guard at the door, for all that answers on it."""
