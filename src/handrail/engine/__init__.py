"""What happens: async, speaking only to protocols that this room owns."""
