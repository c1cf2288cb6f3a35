"""The HTTP API, its live feed and the console: what browsers and scripts speak to behind `handrail serve`."""
