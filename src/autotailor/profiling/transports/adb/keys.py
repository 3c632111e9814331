"""The RSA key by which devices know this user: the one that Android's own adb uses, made where there is none."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from adb_shell.auth.keygen import keygen, write_public_keyfile
from adb_shell.auth.sign_cryptography import CryptographySigner

from autotailor.profiling.errors import DeviceError


def user_key() -> Path:
    """The private key's file; made, with its public key beside it, where it is missing."""
    folder = Path(os.environ.get("ANDROID_USER_HOME") or Path.home() / ".android")
    key = folder / "adbkey"
    if not key.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "adbkey"
            keygen(str(made))
            made.chmod(0o600)
            with suppress(FileExistsError):  # another process was faster: its key counts
                os.link(made, key)
    public = key.with_suffix(".pub")
    if not public.exists():
        write_public_keyfile(str(key), str(public))
    return key


def signer(name: str, key: str | None = None) -> CryptographySigner:
    """What signs a device's challenge.

    Args:
        name: of the device, for messages.
        key: the private key's file, its public key beside it; None: the user's own.

    Raises:
        DeviceError: it cannot be read or made.
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
            "~/.android/adbkey, a new one is made then and the device asks for it"
        ) from error
