"""From nodes to text: style "source", which copies what was not touched, and XLA's styles. Must not know the readers."""
