"""The contract of the API: one table of routes, what each takes and gives, and the OpenAPI document made from it."""
