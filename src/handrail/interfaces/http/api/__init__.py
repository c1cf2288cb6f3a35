"""The handlers of the API: each translates a request into engine calls, and the result into an answer."""
