"""Devices are listed in the background."""

from autotune.devices import Address
from autotune.devices.listing import Listing, find_device


def test_a_listing_answers_again_and_after_it_was_abandoned():
    listing = Listing(("fake",))
    listing.abandon()
    first = listing.devices()
    assert [address for address, _ in first] == [Address("fake", 0)]
    assert listing.devices() is first
    listing.abandon()
    assert find_device("fake", listing=listing) == first[0]
