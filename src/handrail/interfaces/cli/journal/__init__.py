"""`handrail journal ...`"""
