"""Policy: who may do what. One table, one function; every command that reaches dispatch is asked about here."""
