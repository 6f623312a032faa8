"""Where other people's code runs: what one command may see and change, held by the kernel while it runs."""
