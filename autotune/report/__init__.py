"""Plots for people to look at. Rendering only."""
