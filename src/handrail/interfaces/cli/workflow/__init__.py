"""`handrail workflow ...`"""
