"""Scripts that run inside of an app's own interpreter; they import nothing of this package."""
