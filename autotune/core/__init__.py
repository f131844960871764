"""Frozen records, the expression language and launch plans, which all other packages share.

Standard library only; nothing here touches a device, a file or the clock.
"""
