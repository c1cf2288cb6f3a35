"""The shared level of caches: a Redis or Valkey server that the settings name, and the seal of what is kept there."""
