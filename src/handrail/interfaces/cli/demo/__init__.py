"""`handrail demo`"""
