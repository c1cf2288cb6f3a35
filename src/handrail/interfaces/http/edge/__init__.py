"""The edge of the API: who comes in, what is read from a request, and how an answer leaves."""
