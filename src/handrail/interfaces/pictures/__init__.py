"""Pictures of a definition: for the terminal, as Mermaid, as SVG."""
