"""The prices of a small shop's carts."""
