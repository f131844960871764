"""How strong a space is: mistakes planted into its kernel, and how many of them verification catches."""
