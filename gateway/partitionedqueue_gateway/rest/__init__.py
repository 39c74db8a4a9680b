"""HTTP: health, counts and metrics. It reads what `entities` knows, and knows no other wire."""
