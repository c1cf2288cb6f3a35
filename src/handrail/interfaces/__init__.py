"""Who is talking: words in, command, words out."""
