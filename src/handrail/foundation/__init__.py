"""The floor below the rooms: what several of them need and what is not about handrail."""
