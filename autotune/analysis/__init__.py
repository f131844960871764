"""What results say: comparisons across devices, importance of parameters, replays and merges."""
