"""The RSA key by which devices know this user. It is the key that Android's own adb uses, and is made if missing."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from adb_shell.auth.keygen import keygen, write_public_keyfile
from adb_shell.auth.sign_cryptography import CryptographySigner

from autotailor.profiling.errors import DeviceError


def user_key() -> Path:
    """The file of this user's private key. A missing key is made, with the public key in a file beside it."""
    folder = Path(os.environ.get("ANDROID_USER_HOME") or Path.home() / ".android")
    key = folder / "adbkey"
    if not key.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "adbkey"
            keygen(str(made))
            made.chmod(0o600)
            with suppress(FileExistsError):  # where another process was faster, that process's key is used
                os.link(made, key)
    public = key.with_suffix(".pub")
    if not public.exists():
        write_public_keyfile(str(key), str(public))
    return key


def signer(name: str, key: str | None = None) -> CryptographySigner:
    """The signer that answers a device's challenge with this user's key.

    Args:
        name: the device's name, for messages.
        key: the private key's file, with the public key in a file beside it; None for the user's own key.

    Raises:
        DeviceError: the key cannot be read or made.
    """
    try:
        return CryptographySigner(str(Path(key).expanduser() if key else user_key()))
    except (OSError, ValueError, TypeError) as error:
        if key:
            raise DeviceError(
                f"device {name}: device.key is {key}, expected an adb key with its public key in {key}.pub ({error}): "
                f"make one with `adb keygen {key}`, or set device.key to null for the user's own"
            ) from error
        raise DeviceError(
            f"device {name}: the adb key of this user cannot be read or made ({error}): repair or remove "
            "~/.android/adbkey; where the key is missing, a new one is made and the device asks a person to accept it"
        ) from error
