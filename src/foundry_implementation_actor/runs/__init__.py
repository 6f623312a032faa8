"""The order of the steps at each door, and what executes them."""
