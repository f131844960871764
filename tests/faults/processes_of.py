"""The processes of a command that a test started, and what they listen on, as Linux tells in /proc."""

import ipaddress
import socket
import struct
from pathlib import Path

MARK = "AUTOTUNE_MARK"  # a variable that the command gets, and with it every process that it starts


def processes_of(mark):
    """The ids of all living processes that have the mark, whoever is their parent by now."""
    words = f"{MARK}={mark}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if words in (entry / "environ").read_bytes().split(b"\0"):
                    found.add(int(entry.name))
            except OSError:  # it has ended, or is another user's
                continue
    return found


def listening(pid):
    """The addresses and ports on which a process listens."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(str(entry.readlink()))
        except FileNotFoundError:  # closed since
            continue
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                address, port = words[1].split(":")
                found.append((_address(bytes.fromhex(address)), int(port, 16)))
    return found


def _address(data):
    """An address from the kernel's words of 32 bits, each in the machine's order of bytes."""
    words = struct.unpack(f">{len(data) // 4}I", data)
    packed = struct.pack(f"={len(words)}I", *words)
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return ipaddress.ip_address(socket.inet_ntop(family, packed))
