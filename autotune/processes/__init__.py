"""Child processes that can always be killed, temporary folders, and files that several processes share."""
