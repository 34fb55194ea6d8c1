"""Values of node properties: frozen, compared by content, printed as XLA prints them."""
