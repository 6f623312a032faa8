"""A stand-in for the cart service."""
