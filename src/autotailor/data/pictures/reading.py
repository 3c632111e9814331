"""Turns the bytes of a picture file into upright RGB pixels, or refuses the file with a reason.

These kinds of pictures need care to be read correctly:

* Palettes and 1-bit pictures are read by their colours. Transparent pixels (alpha channel, palette or colour key) are
  drawn over white, as a web page shows them, or over black; the colour stored below the transparency is arbitrary.
* Greyscale of 12 and 16 bits is scaled so that the format's white becomes 255, because Pillow's ``convert`` clips every
  value above 255. Of several channels with 16 bits each, Pillow itself keeps the upper 8 bits.
* CMYK is converted by the colour profile in the file, and as inks on white paper where the file has no profile.
* Pictures are turned by EXIF's orientation, as viewers do. A broken EXIF block is ignored.
* Of several pictures in one camera file (MPO) the first is read; the others are views and previews of the first.

These files are refused: files that are empty, cut off or no picture; animations and files of several pages, because
the label does not say which frame it means; floating-point, signed, 32-bit and Lab pixels, because there is no
agreed white value for them.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL
from PIL import ExifTags, Image, ImageCms, ImageOps

from autotailor.data.errors import DataError
from autotailor.data.labels import IGNORED

EXAMINER = f"pictures 1, Pillow {PIL.__version__}"  # verdicts by other rules or by another Pillow are not reused
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.TiffImagePlugin")  # about EXIF blocks
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "DIB", "GIF", "PPM", "AVIF")
DROP = "drop"
"""The background that leaves transparent pixels their stored colours, as torchvision's ``ImageFolder`` does."""
DEEP = 65535  # white of 16 bits
BITS_PER_SAMPLE, PHOTOMETRIC, WHITE_IS_ZERO = 258, 262, 0  # of TIFF
MAGIC = {
    "JPEG": re.compile(rb"\xff\xd8"),
    "PNG": re.compile(rb"\x89PNG"),
    "WEBP": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "TIFF": re.compile(rb"II\*\0|MM\0\*"),
    "BMP": re.compile(rb"BM"),
    "GIF": re.compile(rb"GIF8"),
    "PPM": re.compile(rb"P[1-6]\s"),
    "AVIF": re.compile(rb"....ftypavi[fs]", re.DOTALL),
    "HEIC": re.compile(rb"....ftyp", re.DOTALL),
    "JPEG 2000": re.compile(rb"....jP  |\xff\x4f\xff\x51", re.DOTALL),
    "PDF": re.compile(rb"%PDF"),
    "Photoshop": re.compile(rb"8BPS"),
    "SVG, HTML or XML": re.compile(rb"\s*<"),
    "Git LFS pointer (run `git lfs pull`)": re.compile(rb"version https://git-lfs"),
}
SEGMENT = re.compile(rb"\xff+[^\x00\xff\xd0-\xd7]")  # a JPEG marker; FF 00 and D0 to D7 occur within a scan
START_OF_SCAN, END_OF_IMAGE = 0xDA, 0xD9
MASKS = ("L", "P", "1", "I", "I;16")
"""Modes of masks, which have one number for each pixel."""
TURNED = (5, 6, 7, 8)
"""EXIF's orientations of pictures whose height was their width."""


class PictureError(DataError):
    """A picture cannot be read correctly; the message is the reason, without the path."""


def read_picture(content: bytes, background: str = "white") -> Image.Image:
    """The picture in a file's bytes: mode RGB, upright.

    Args:
        content: of the file.
        background: what transparent pixels stand over, one of ``config.BACKGROUNDS``.

    Raises:
        PictureError: the file is of a kind that the module's docstring lists as refused.
    """
    if not content:
        raise PictureError("is empty")
    image = _open(content)
    _check_single(image)
    _guard("is cut off or damaged", image.load)
    if image.format in ("JPEG", "MPO") and not _ends(content):
        raise PictureError("is cut off: the JPEG's end is missing")
    picture: Image.Image = _guard("cannot be converted to RGB", lambda: to_rgb(upright(image), background))
    return picture


def to_rgb(image: Image.Image, background: str = "white") -> Image.Image:
    """Converts a loaded picture of any mode to RGB, as the module's docstring says.

    Args:
        image: the picture.
        background: what transparent pixels stand over, one of ``config.BACKGROUNDS``.

    Raises:
        PictureError: there is no agreed white value for the picture's mode.
    """
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        return _deep_grey(image, background)
    if image.mode in ("I", "F", "LAB"):
        what = {"I": "32-bit or signed grey", "F": "floating-point", "LAB": "Lab"}[image.mode]
        raise PictureError(f"has {what} pixels, whose white is not agreed upon; save it with 8 bits for each channel")
    if image.mode == "CMYK":
        return _cmyk(image)
    if image.has_transparency_data and background != DROP:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, background), layer).convert("RGB")
    return image.convert("RGB")


def read_mask(content: bytes, ignore: int) -> Image.Image:
    """The class of each pixel in the bytes of a PNG file: mode L, ``IGNORED`` where no class counts.

    Args:
        content: of the file, whose pixels or places in a palette are numbers of classes.
        ignore: the number of pixels that do not count.

    Raises:
        PictureError: the file is no PNG of one channel, or a number lies above 255.
    """
    values = _mask(content)
    if values.max() > IGNORED:
        raise PictureError(f"has the value {values.max()}, and the largest is {IGNORED}")
    return Image.fromarray(np.where(values == ignore, IGNORED, values).astype(np.uint8))


def examine_mask(content: bytes, classes: int, ignore: int) -> str:
    """The reason why a mask cannot be used, where it has other numbers than those of classes and ``ignore``; or ""."""
    try:
        values, counts = np.unique(_mask(content), return_counts=True)
    except PictureError as refusal:
        return str(refusal)
    strange = (values >= classes) & (values != ignore)
    if not strange.any():
        return ""
    return (
        f"has the value {values[strange][0]} at {counts[strange][0]:,} pixels, which is no class: there are {classes}, "
        f"from 0 to {classes - 1}, and {ignore} is ignored"
    )


def _mask(content: bytes) -> npt.NDArray[np.int64]:
    """The numbers of a mask's pixels ``[height, width]``."""
    if not content:
        raise PictureError("is empty")
    image = _open(content)
    if image.format != "PNG":
        raise PictureError(f"is a {image.format} file; save masks as PNG, which keeps every number")
    _check_single(image)
    _guard("is cut off or damaged", image.load)
    if image.mode not in MASKS:
        raise PictureError(f"has pixels of several channels ({image.mode}); save one channel of numbers of classes")
    return np.asarray(image).astype(np.int64)


def upright_size(path: Path) -> tuple[int, int]:
    """Width and height of a picture that can be used, turned upright, in pixels; the pixels are not read."""
    with Image.open(path, formats=FORMATS) as image:
        width, height = image.size
        with contextlib.suppress(Exception):  # as in ``upright``
            if image.getexif().get(ExifTags.Base.Orientation) in TURNED:
                return height, width
    return width, height


def is_transparent(path: Path) -> bool:
    """Whether some pixel of a picture that can be used lets a background through."""
    with Image.open(path, formats=FORMATS) as image:
        if not image.has_transparency_data:
            return False
        if image.mode.startswith("I"):  # 16 bits of grey, one value of which is transparent
            return bool((np.asarray(image) == image.info["transparency"]).any())
        return bool((np.asarray(image.convert("RGBA"))[..., 3] < 255).any())


def examine(content: bytes) -> str:
    """The reason why a picture cannot be used; "" where it can be used."""
    try:
        read_picture(content)
    except PictureError as refusal:
        return str(refusal)
    return ""


def _open(content: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise PictureError(f"has too many pixels ({error}); scale it down") from error
    except Exception as error:
        kind = next((name for name, magic in MAGIC.items() if magic.match(content)), "")
        if kind in FORMATS:
            raise PictureError(f"is cut off or damaged: it begins as {kind} and cannot be read further") from error
        what = f"is a {kind} file" if kind else "is no picture of a known format"
        raise PictureError(f"{what}; pictures are read from {', '.join(FORMATS)}") from error


def _check_single(image: Image.Image) -> None:
    frames = _guard("is cut off or damaged", lambda: getattr(image, "n_frames", 1))
    if frames > 1 and image.format != "MPO":
        raise PictureError(f"has {frames} frames or pages; save the frame that shows its class as a separate picture")


def _guard(complaint: str, call: Callable[[], Any]) -> Any:
    """Turns any error of a call into a PictureError, because Pillow's decoders raise many kinds of errors."""
    try:
        return call()
    except PictureError:
        raise
    except Image.DecompressionBombError as error:
        raise PictureError(f"has too many pixels ({error}); scale it down") from error
    except Exception as error:
        raise PictureError(f"{complaint} ({' '.join(str(error).split()) or type(error).__name__})") from error


def upright(image: Image.Image) -> Image.Image:
    """Turns a loaded picture in place as its EXIF block says, and returns it."""
    with contextlib.suppress(Exception):  # a broken EXIF block does not spoil the pixels
        ImageOps.exif_transpose(image, in_place=True)
    return image


def _ends(content: bytes) -> bool:
    """Whether a JPEG's last scan is followed by the end marker.

    The marker is checked because libjpeg fills missing pixels, so that a file whose end was never written (zeros)
    decodes without an error.
    """
    position, in_scan = 2, False
    while (marker := SEGMENT.search(content, position)) is not None:
        kind = content[marker.end() - 1]
        if kind == END_OF_IMAGE:
            return in_scan
        in_scan = in_scan or kind == START_OF_SCAN
        position = marker.end() + int.from_bytes(content[marker.end() : marker.end() + 2])
    return False


def _deep_grey(image: Image.Image, background: str) -> Image.Image:
    """Scales grey pixels of 12 and 16 bits to 8 bits, and converts them to RGB."""
    values: npt.NDArray[np.int64] = np.asarray(image).astype(np.int64)
    tags = getattr(image, "tag_v2", {})
    bits = tags.get(BITS_PER_SAMPLE, (16,))
    white = 2 ** int(bits[0] if isinstance(bits, tuple) else bits) - 1 if tags else DEEP
    scaled = np.clip((values * 255 + white // 2) // white, 0, 255)
    if tags and tags.get(PHOTOMETRIC) == WHITE_IS_ZERO:
        scaled = 255 - scaled
    key = image.info.get("transparency")
    if isinstance(key, int) and background != DROP:
        scaled = np.where(values == key, 255 if background == "white" else 0, scaled)
    return Image.fromarray(scaled.astype(np.uint8)).convert("RGB")


def _cmyk(image: Image.Image) -> Image.Image:
    profile = image.info.get("icc_profile")
    if profile:
        try:
            converted = ImageCms.profileToProfile(
                image, ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB"), outputMode="RGB"
            )
            if converted is not None:
                return converted
        except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
            pass  # the profile is broken or belongs to another colour space
    return image.convert("RGB")
