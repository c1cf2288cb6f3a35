"""How Python projects run their tests, besides what their runner's settings say."""
