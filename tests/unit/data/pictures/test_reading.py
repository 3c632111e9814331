"""Pictures of every kind are read as they are meant, or refused with a reason."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from autotailor.data.pictures.items import to_picture
from autotailor.data.pictures.reading import PictureError, examine, read_picture
from picture_files import animated, cmyk_profile, encoded, every_kind, photo, tiff

KINDS = every_kind()


def pixels(content: bytes) -> np.ndarray:
    return np.asarray(read_picture(content))


def grey(values: np.ndarray) -> np.ndarray:
    return np.repeat(values.astype(np.uint8)[..., None], 3, axis=2)


@pytest.mark.parametrize("kind", ["png", "webp lossless", "tiff", "tiff lzw", "bmp", "ppm"])
def test_what_is_stored_without_loss_is_read_without_loss(kind: str) -> None:
    assert np.array_equal(pixels(KINDS[kind]), np.asarray(photo()))


def test_sixteen_bits_of_grey_are_scaled_and_not_clipped_to_white() -> None:
    values = np.linspace(0, 65535, 16 * 24).astype(np.uint16).reshape(16, 24)
    meant = np.rint(values / 257)
    pgm = b"P5 24 16 65535\n" + values.astype(">u2").tobytes()
    for content in (encoded(Image.fromarray(values), "PNG"), tiff(values, 16, 1), pgm):
        assert np.abs(pixels(content).astype(int) - grey(meant)).max() <= 1
    assert np.abs(pixels(tiff(values, 16, 0)).astype(int) - grey(255 - meant)).max() <= 1  # 0 is white
    coarse = values // 16
    assert np.abs(pixels(tiff(coarse, 12, 1)).astype(int) - grey(np.rint(coarse / 4095 * 255))).max() <= 1
    naive = np.asarray(Image.open(io.BytesIO(encoded(Image.fromarray(values), "PNG"))).convert("I").convert("RGB"))
    assert (naive == 255).mean() > 0.9  # what the error would look like


def test_a_palette_means_its_colours_and_transparent_pixels_are_white() -> None:
    indices = Image.new("P", (4, 2))
    indices.putpalette([10, 20, 30, 200, 100, 50, 0, 0, 0])
    indices.putdata([0, 1, 2, 0, 1, 2, 0, 1])
    plain = pixels(encoded(indices, "PNG"))
    assert plain[0].tolist() == [[10, 20, 30], [200, 100, 50], [0, 0, 0], [10, 20, 30]]
    for content in (encoded(indices, "PNG", transparency=2), encoded(indices, "GIF", transparency=2)):
        seen = pixels(content)
        assert seen[0].tolist() == [[10, 20, 30], [200, 100, 50], [255, 255, 255], [10, 20, 30]]


def test_transparency_is_paper_whatever_lies_below() -> None:
    red = Image.new("RGBA", (3, 1), (255, 0, 0, 255))
    red.putpixel((1, 0), (0, 0, 0, 0))
    red.putpixel((2, 0), (0, 0, 0, 128))
    assert pixels(encoded(red, "PNG"))[0].tolist() == [[255, 0, 0], [255, 255, 255], [127, 127, 127]]
    key = Image.new("RGB", (2, 1), (7, 8, 9))
    key.putpixel((1, 0), (1, 2, 3))
    assert pixels(encoded(key, "PNG", transparency=(1, 2, 3)))[0].tolist() == [[7, 8, 9], [255, 255, 255]]
    faint = Image.fromarray(np.array([[[9, 0], [80, 255]]], dtype=np.uint8), "LA")
    assert pixels(encoded(faint, "PNG"))[0].tolist() == [[255] * 3, [80] * 3]
    deep = Image.fromarray(np.array([[0, 65535, 4112]], dtype=np.uint16))
    assert pixels(encoded(deep, "PNG", transparency=0))[0].tolist() == [[255] * 3, [255] * 3, [16] * 3]


def test_cmyk_is_ink_on_paper_and_goes_by_its_profile_where_it_has_one() -> None:
    inks = Image.fromarray(np.array([[[0, 0, 0, 0], [255, 0, 0, 0], [0, 0, 0, 255]]], np.uint8).repeat(8, 0), "CMYK")
    plain = pixels(encoded(inks, "TIFF"))
    assert plain[0].tolist() == [[255, 255, 255], [0, 255, 255], [0, 0, 0]]
    paper, cyan, black = pixels(encoded(inks, "TIFF", icc_profile=cmyk_profile()))[0].astype(int)
    assert paper.min() > 250
    assert black.min() > 250  # the profile says so
    assert cyan[1] > cyan[0] + 30  # light green
    assert cyan[1] > cyan[2] + 30
    broken = pixels(encoded(inks, "TIFF", icc_profile=b"no profile"))
    assert np.array_equal(broken, plain)
    flat = Image.new("CMYK", (16, 16), (0, 128, 255, 20))
    assert np.abs(pixels(encoded(flat, "JPEG", quality=95)).astype(int) - np.asarray(flat.convert("RGB"))).max() < 6


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_stand_upright(kind: str, orientation: int) -> None:
    upright = Image.new("RGB", (32, 16), (255, 255, 255))
    upright.paste((0, 0, 0), (0, 0, 8, 8))  # black top left
    stored = {
        1: None, 2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[orientation]  # fmt: skip
    lying = upright if stored is None else upright.transpose(stored)
    exif = Image.Exif()
    exif[0x0112] = orientation
    seen = pixels(encoded(lying, kind, exif=exif)).astype(int)
    assert seen.shape == (16, 32, 3)
    assert np.abs(seen - np.asarray(upright)).mean() < 6


def test_a_broken_exif_block_says_nothing() -> None:
    assert np.array_equal(pixels(encoded(photo(), "PNG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")), np.asarray(photo()))


def test_of_a_cameras_several_pictures_the_first_is_meant() -> None:
    first, preview = Image.new("RGB", (16, 16), (200, 0, 0)), Image.new("RGB", (16, 16), (0, 0, 200))
    content = encoded(first, "MPO", save_all=True, append_images=[preview])
    assert Image.open(io.BytesIO(content)).format == "MPO"
    assert np.abs(pixels(content).astype(int) - [200, 0, 0]).max() < 8


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"just some text", "is no picture of a known format"),
        (b"<html><body>404</body></html>", "is a SVG, HTML or XML file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\0\0\0\x18ftypheic" + bytes(40), "is a HEIC file"),
        (KINDS["webp"][:80], "is cut off or damaged: it begins as WEBP"),
        (KINDS["png"][:300], "is cut off or damaged"),
        (KINDS["jpeg"][:-2], "is cut off"),
        (animated("GIF"), "has 3 frames or pages"),
        (animated("WEBP"), "has 3 frames"),
        (animated("PNG"), "has 3 frames"),
        (animated("TIFF"), "has 3 frames or pages"),
        (encoded(Image.new("F", (4, 4)), "TIFF"), "has floating-point pixels"),
        (encoded(Image.new("I", (4, 4)), "TIFF"), "has 32-bit or signed grey pixels"),
        (encoded(Image.new("LAB", (4, 4)), "TIFF"), "has Lab pixels"),
        (b"BM" + bytes(12) + (40).to_bytes(4, "little") + (10**5).to_bytes(4, "little") * 2 + b"\1\0\x18\0" + bytes(24),
         "has too many pixels"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_cannot_be_read_rightly_is_refused_with_a_reason(content: bytes, reason: str) -> None:
    assert reason in examine(content)


def test_a_jpeg_whose_rest_was_never_written_is_refused() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (80, 112, 3), dtype=np.uint8)
    content = encoded(Image.fromarray(noise), "JPEG", quality=90)
    unsuspected = 0
    for length in range(len(content) // 4, len(content) - 2, 40):
        zeros = content[:length] + bytes(len(content) - length)
        with contextlib.suppress(OSError):
            Image.open(io.BytesIO(zeros)).load()
            unsuspected += 1
        assert examine(zeros).startswith("is cut off")
    assert unsuspected > 5  # libjpeg fills up what is missing
    assert examine(content + b"a camera's video \xff\xda\xff\xd8 behind it") == ""


@pytest.mark.parametrize("kind", KINDS)
def test_every_beginning_of_a_file_is_refused_or_is_the_whole_picture(kind: str) -> None:
    content = KINDS[kind]
    whole = pixels(content)
    for length in {*range(0, len(content), max(1, len(content) // 60)), *range(len(content) - 12, len(content))}:
        try:
            part = pixels(content[:length])
        except PictureError:
            continue
        assert np.array_equal(part, whole), length


@st.composite
def broken_pictures(draw: st.DrawFn) -> bytes:
    """Files with changed, removed and added bytes, and files of nothing but noise."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    content = bytearray(KINDS[draw(st.sampled_from(sorted(KINDS)))])
    for _ in range(draw(st.integers(1, 8))):
        place = draw(st.integers(0, max(0, min(len(content) - 1, draw(st.sampled_from([40, 200, 10**6]))))))
        action = draw(st.sampled_from(["set", "cut", "insert", "extreme"]))
        if action == "set" and content:
            content[place] = draw(st.integers(0, 255))
        elif action == "extreme":
            content[place : place + 4] = draw(st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"]))
        elif action == "cut":
            del content[place : place + draw(st.integers(1, 40))]
        else:
            content[place:place] = draw(st.binary(max_size=20))
    return bytes(content)


def check_any_bytes(content: bytes) -> None:
    """Only refusals of ours, and a picture that is accepted once is accepted again, in the same form."""
    verdict = examine(content)
    if not verdict:
        image = read_picture(content)
        assert image.mode == "RGB"
        assert min(image.size) >= 1


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(broken_pictures())
def test_no_bytes_end_in_a_traceback(content: bytes) -> None:
    check_any_bytes(content)


@pytest.mark.sweep
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(broken_pictures())
def test_no_bytes_of_a_thousand_end_in_a_traceback(content: bytes) -> None:
    check_any_bytes(content)


@pytest.mark.parametrize(("background", "colour"), [("white", 255), ("black", 0), ("drop", 77)])
def test_transparent_pixels_stand_over_the_background_or_keep_their_colours(background: str, colour: int) -> None:
    for mode, stored in (("RGBA", (77, 77, 77, 0)), ("LA", (77, 0))):
        file = io.BytesIO()
        Image.new(mode, (2, 2), stored).save(file, "PNG")
        assert read_picture(file.getvalue(), background).getpixel((0, 0)) == (colour,) * 3
    assert to_picture(Image.new("RGBA", (2, 2), (77, 77, 77, 0)), background).getpixel((1, 1)) == (colour,) * 3
