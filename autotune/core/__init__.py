"""Frozen records, the expression language and launch plans: what every other package is made of.

Standard library only; nothing here touches a device, a file or the clock.
"""
