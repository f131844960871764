"""Child processes that can always be killed, temporary folders, and files that processes share."""
