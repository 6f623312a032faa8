"""Scripts that run where this package is not imported: in the interpreter of an app."""
