"""Values: what stands on nodes; frozen, compared by content, each prints itself as XLA does."""
