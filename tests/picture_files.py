"""Picture files of every kind, written by Pillow or byte by byte."""

import io
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]


def encoded(image: Image.Image, kind: str, **more: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **more)  # type: ignore[arg-type]
    return stream.getvalue()


def photo(seed: int = 0, size: tuple[int, int] = (24, 16)) -> Image.Image:
    """A smooth colour picture."""
    pixels = np.random.default_rng(seed).integers(0, 255, (5, 6, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize(size)


def animated(kind: str) -> bytes:
    frames = [photo(seed) for seed in range(3)]
    return encoded(frames[0], kind, save_all=True, append_images=frames[1:])


def every_kind() -> dict[str, bytes]:
    """One undamaged file of each kind that autotailor reads."""
    grey = Image.fromarray(np.arange(24 * 16, dtype=np.uint16).reshape(16, 24) * 170)
    return {
        "jpeg": encoded(photo(), "JPEG", quality=90),
        "progressive": encoded(photo(), "JPEG", progressive=True),
        "cmyk": encoded(photo().convert("CMYK"), "JPEG"),
        "png": encoded(photo(), "PNG"),
        "palette": encoded(photo().quantize(16), "PNG"),
        "grey 16": encoded(grey, "PNG"),
        "gif": encoded(photo(), "GIF"),
        "webp": encoded(photo(), "WEBP"),
        "webp lossless": encoded(photo(), "WEBP", lossless=True),
        "tiff": encoded(photo(), "TIFF"),
        "tiff lzw": encoded(photo(), "TIFF", compression="tiff_lzw"),
        "bmp": encoded(photo(), "BMP"),
        "ppm": encoded(photo(), "PPM"),
    }


def tiff(values: npt.NDArray[np.uint16], bits: int, photometric: int) -> bytes:
    """A little-endian TIFF of one uncompressed grey strip."""
    height, width = values.shape
    if bits == 16:
        strip = values.astype("<u2").tobytes()
    else:  # 12 bits, two values in three bytes, most significant first
        pairs = values.reshape(-1, 2).astype(np.uint32)
        packed = pairs[:, 0] << 12 | pairs[:, 1]
        strip = b"".join(int(value).to_bytes(3, "big") for value in packed)
    tags = [
        (256, 3, width), (257, 3, height), (258, 3, bits), (259, 3, 1), (262, 3, photometric), (273, 4, 8),
        (277, 3, 1), (278, 3, height), (279, 4, len(strip)),
    ]  # fmt: skip
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, kind, 1, v) for tag, kind, v in tags)
    return b"II*\0" + struct.pack("<I", 8 + len(strip)) + strip + directory + b"\0\0\0\0"


def cmyk_profile() -> bytes:
    """An ICC profile in which cyan ink alone is a light green, and everything else paper white."""
    corners = b"".join(
        bytes((230, 60, 200)) if (c, m, y, k) == (1, 0, 0, 0) else bytes((255, 128, 128))
        for c in (0, 1) for m in (0, 1) for y in (0, 1) for k in (0, 1)
    )  # fmt: skip
    identity = struct.pack(">9i", *(65536 if i % 4 == 0 else 0 for i in range(9)))
    ramp = bytes(range(256))
    table = b"mft1" + bytes(4) + bytes((4, 3, 2, 0)) + identity + ramp * 4 + corners + ramp * 3
    white = b"XYZ " + bytes(4) + struct.pack(">3i", 63190, 65536, 54061)
    text = b"text" + bytes(4) + b"test\0"
    name = b"desc" + bytes(4) + struct.pack(">I", 5) + b"test\0" + bytes(78)
    offset, body, index = 128 + 4 + 12 * 4, b"", b""
    for tag, content in ((b"A2B0", table), (b"wtpt", white), (b"cprt", text), (b"desc", name)):
        index += tag + struct.pack(">II", offset + len(body), len(content))
        body += content + bytes(-len(content) % 4)
    size = offset + len(body)
    header = struct.pack(">I", size) + b"lcms" + bytes((2, 0x40, 0, 0)) + b"prtrCMYKLab " + bytes(12) + b"acsp"
    header += bytes(28) + struct.pack(">3i", 63190, 65536, 54061) + bytes(48)
    return header[:128] + struct.pack(">I", 4) + index + body


def section(root: Path, **more: object) -> dict[str, object]:
    """The ``data`` section of a folder of pictures."""
    return {"name": "mine", "kind": "folder", "root": str(root), "resolution": 16, **more}
