"""What results say, across devices and parameters; and what a kernel says of its first space."""
