"""Code below all other packages: what several of them need and what is not about handrail."""
