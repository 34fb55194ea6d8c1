"""Pictures of what HLO text says: SVG for browsers and notebooks, text for terminals."""
