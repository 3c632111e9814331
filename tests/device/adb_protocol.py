"""Messages and keys of the ADB protocol, from its description in AOSP (packages/modules/adb, protocol.txt)."""

import base64
import socket
import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils

VERSION = 0x01000001
"""From this version on, checksums of data are not looked at."""
MAX_DATA = 256 * 1024
OLD_VERSION, OLD_MAX_DATA = 0x01000000, 4096
"""Of daemons before Android 7: they demand checksums, and close on a message that is longer."""
TOKEN, SIGNATURE, PUBLIC_KEY = 1, 2, 3
HEADER = struct.Struct("<4s5I")
KEY_WORDS = 64


@dataclass(frozen=True)
class Message:
    """One message: a command of four letters, two numbers, data."""

    command: bytes
    arg0: int
    arg1: int
    data: bytes = b""

    def pack(self) -> bytes:
        magic = int.from_bytes(self.command, "little") ^ 0xFFFFFFFF
        return HEADER.pack(self.command, self.arg0, self.arg1, len(self.data), sum(self.data), magic) + self.data


def receive(connection: socket.socket, check: bool, most: int = 2**20) -> Message:
    """The next message; raises ConnectionError at the end, ValueError where it is none or has more than ``most``."""
    command, arg0, arg1, length, checksum, magic = HEADER.unpack(read_exactly(connection, HEADER.size))
    if magic != int.from_bytes(command, "little") ^ 0xFFFFFFFF or length > most:
        raise ValueError(f"no message: {command!r}")
    data = read_exactly(connection, length)
    if check and sum(data) & 0xFFFFFFFF != checksum:
        raise ValueError(f"wrong checksum of {command!r}")
    return Message(command, arg0, arg1, data)


def read_exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            raise ConnectionResetError("the client closed the connection")
        data += part
    return bytes(data)


def public_key(text: bytes) -> rsa.RSAPublicKey:
    """A key as adb sends it: base64 of Android's own structure, then the user's name."""
    raw = base64.b64decode(text.rstrip(b"\0").split()[0])
    words, _, modulus, _, exponent = struct.unpack(f"<2I{4 * KEY_WORDS}s{4 * KEY_WORDS}sI", raw)
    if words != KEY_WORDS:
        raise ValueError(f"a key of {words} words")
    return rsa.RSAPublicNumbers(exponent, int.from_bytes(modulus, "little")).public_key()


def is_signed(key: rsa.RSAPublicKey, token: bytes, signature: bytes) -> bool:
    """Whether a token of 20 bytes was signed with this key, as if it were a SHA-1."""
    try:
        key.verify(signature, token, padding.PKCS1v15(), utils.Prehashed(hashes.SHA1()))
    except InvalidSignature:
        return False
    return True
