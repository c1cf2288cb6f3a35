"""`http.request`: one HTTP call to an allowed address."""
