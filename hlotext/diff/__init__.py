"""Two modules side by side: which operation is which."""
