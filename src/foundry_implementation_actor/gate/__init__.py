"""The landing gate: a class body is judged in isolation and lands whole, or leaves no trace."""
