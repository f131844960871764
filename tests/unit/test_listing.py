"""Devices are listed in the background."""

from autotune.devices import Address
from autotune.devices.listing import Listing, find_device, listing_for


def test_a_listing_answers_again_and_after_it_was_abandoned():
    listing = Listing(("fake",))
    listing.abandon()
    first = listing.devices()
    assert [address for address, _ in first] == [Address("fake", 0)]
    assert listing.devices() is first
    listing.abandon()
    assert find_device("fake", listing=listing) == first[0]


def test_without_a_name_only_cuda_is_asked_first_where_its_driver_is(tmp_path, monkeypatch):
    monkeypatch.setattr("autotune.devices.listing._NVIDIA_GPUS", tmp_path)
    listing, asked = listing_for(None), []
    assert not listing.is_complete

    def find_all():
        asked.append(1)
        return Listing(("fake", "opencl")).devices()

    monkeypatch.setattr("autotune.devices.listing.find_devices", find_all)
    address, _ = find_device(None, listing=listing)
    has_gpu = bool(listing.devices())
    assert len(asked) == (not has_gpu)
    assert (address.backend in ("cuda", "pycuda")) == has_gpu and address.backend != "fake"


def test_without_a_driver_of_nvidia_all_backends_are_asked_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("autotune.devices.listing._NVIDIA_GPUS", tmp_path / "none")
    assert listing_for(None).is_complete and not listing_for("fake").is_complete


def test_where_no_device_can_be_found_the_list_says_what_to_install_and_best_answers(
    searched_folder, monkeypatch
):
    monkeypatch.setattr("autotune.devices.listing.BACKENDS", {})  # as without the packages of all of them
    monkeypatch.setattr("autotune.devices.listing.find_devices", Listing(()).devices)
    assert "no device found; for one, install" in searched_folder.run("devices").stdout
    served = searched_folder.run("best", "double")
    assert (served.returncode, served.stderr) == (0, ""), served.stderr
    assert searched_folder.run("best", "double", "-d", "opencl:0").returncode == 2
