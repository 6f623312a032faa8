"""The words of this project and their rules: values only, no I/O, standard library only."""
