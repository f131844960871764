"""What users read, a module for each kind of output. Rendering only."""
