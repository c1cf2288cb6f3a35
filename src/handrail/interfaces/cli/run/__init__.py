"""`handrail run ...`"""
