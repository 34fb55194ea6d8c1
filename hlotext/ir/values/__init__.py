"""Values on nodes: frozen, compared by content, each prints itself as XLA does."""
