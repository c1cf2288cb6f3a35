"""The stdio front: what stands between a client's pipe and the SDK, and answers before the SDK is there."""
