"""Previews: what a control would do, computed by the same decisions that it would then be granted by."""
