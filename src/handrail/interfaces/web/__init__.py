"""What listens on a port: address, connections, limits, the guard at the door; whoever answers stands above it."""
