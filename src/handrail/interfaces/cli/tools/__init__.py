"""`handrail tools ...`"""
