"""What is written: events, their bytes, the hash chain, checkpoints, projections, erasure, proof bundles."""
