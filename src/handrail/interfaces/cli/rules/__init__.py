"""`handrail rules ...`"""
