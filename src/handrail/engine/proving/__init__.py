"""Proof: checkpoints, verification, projection repair, erasure, proof bundles."""
