"""Tracing as the engine sees it: a protocol, and what a request brought along."""
