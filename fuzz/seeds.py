"""Writes the corpora of the targets image and jpeg, small pictures of every kind that PIL can write, and Parquet files of texts.

    python fuzz/seeds.py      # needs Pillow and pyarrow
"""

import io
import pathlib
import struct
import zlib

import pyarrow
import pyarrow.parquet
from PIL import Image

CORPUS = pathlib.Path(__file__).parent / "corpus"
WIDTH, HEIGHT = 13, 9


def picture(mode):
    """A picture with gradients."""
    image = Image.new("RGBA", (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            image.putpixel((x, y), (x * 19, y * 28, x * y * 2, 255 - x * 9))
    return image.convert(mode)


def encoded(mode, kind, **options):
    file = io.BytesIO()
    picture(mode).save(file, kind, **options)
    return file.getvalue()


def rotated(number):
    """Metadata with an orientation."""
    exif = Image.Exif()
    exif[0x0112] = number
    return exif


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def interlaced():
    """A PNG whose rows come in seven passes, which PIL cannot write."""
    image = picture("RGB")
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    rows = b""
    for left, top, across, down in passes:
        for y in range(top, HEIGHT, down):
            row = b"".join(bytes(image.getpixel((x, y))) for x in range(left, WIDTH, across))
            rows += b"\0" + row if row else b""
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def run_lengths():
    """A BMP with runs of equal pixels, which PIL cannot write: two rows of a palette of two colours."""
    data = bytes([3, 1, 0, 3, 0, 1, 0, 0, 0, 0, 6, 1, 0, 1])
    palette = bytes([0, 0, 0, 0, 200, 100, 50, 0])
    head = struct.pack("<IiiHHIIiiII", 40, 6, 2, 1, 8, 1, len(data), 0, 0, 2, 2)
    start = 14 + len(head) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + head + palette + data


IMAGES = {
    "png-rgb": encoded("RGB", "PNG"),
    "png-rgba": encoded("RGBA", "PNG"),
    "png-grey": encoded("L", "PNG"),
    "png-bits": encoded("1", "PNG"),
    "png-palette": encoded("P", "PNG", transparency=1),
    "png-sixteen": encoded("I;16", "PNG"),
    "png-rotated": encoded("RGB", "PNG", exif=rotated(6)),
    "png-interlaced": interlaced(),
    "webp-lossy": encoded("RGB", "WEBP", quality=40),
    "webp-lossy-alpha": encoded("RGBA", "WEBP", quality=40),
    "webp-lossless": encoded("RGB", "WEBP", lossless=True),
    "webp-rotated": encoded("RGB", "WEBP", lossless=True, exif=rotated(8)),
    "webp-moving": encoded("RGB", "WEBP", save_all=True, append_images=[picture("RGB").rotate(180)]),
    "bmp-rgb": encoded("RGB", "BMP"),
    "bmp-rgba": encoded("RGBA", "BMP"),
    "bmp-palette": encoded("P", "BMP"),
    "bmp-bits": encoded("1", "BMP"),
    "bmp-runs": run_lengths(),
    "gif-still": encoded("P", "GIF", interlace=0),
    "gif-interlaced": encoded("P", "GIF", interlace=1),
    "gif-moving": encoded("P", "GIF", save_all=True, append_images=[picture("RGB").rotate(180).convert("P")]),
    "tiff-plain": encoded("RGB", "TIFF"),
    "tiff-grey": encoded("L", "TIFF"),
    "tiff-palette": encoded("P", "TIFF"),
    "tiff-lzw": encoded("RGB", "TIFF", compression="tiff_lzw"),
    "tiff-deflate": encoded("RGBA", "TIFF", compression="tiff_adobe_deflate"),
    "tiff-bits": encoded("RGB", "TIFF", compression="packbits"),
    "tiff-fax": encoded("1", "TIFF", compression="group4"),
    "tiff-rotated": encoded("RGB", "TIFF", exif=rotated(5)),
}

JPEGS = {
    "grey": encoded("L", "JPEG"),
    "full": encoded("RGB", "JPEG", quality=80, subsampling=0),
    "half": encoded("RGB", "JPEG", quality=80, subsampling=1),
    "quarter": encoded("RGB", "JPEG", quality=30, subsampling=2),
    "cmyk": encoded("CMYK", "JPEG"),
    "progressive": encoded("RGB", "JPEG", progressive=True, quality=60),
    "progressive-grey": encoded("L", "JPEG", progressive=True),
    "progressive-cmyk": encoded("CMYK", "JPEG", progressive=True),
    "restarts": encoded("RGB", "JPEG", restart_marker_blocks=1),
    "progressive-restarts": encoded("RGB", "JPEG", restart_marker_blocks=1, progressive=True),
    "own-codes": encoded("RGB", "JPEG", optimize=True),
    "rotated": encoded("RGB", "JPEG", exif=rotated(3)),
    "fine": encoded("RGB", "JPEG", quality=100),
}



def table(texts, **options):
    """Texts with labels in a Parquet file."""
    file = io.BytesIO()
    labels = [["dinner", "greeting"][row % 2] for row in range(len(texts))]
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "label": labels}), file, store_schema=False, **options)
    return file.getvalue()


TABLES = {
    "corpus/table/parquet-plain": table(["hello", "", "a \u00e9"], compression="none", use_dictionary=False),
    "corpus/table/parquet-dictionary": table(["hello", "hello", "b"], compression="gzip"),
    # One text of a megabyte, to which many rows refer.
    "regressions/table/long-dictionary": table(["x" * (1 << 20)] * 300, compression="gzip"),
}

for name, data in TABLES.items():
    path = CORPUS.parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)

for target, files in [("image", IMAGES), ("jpeg", JPEGS)]:
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
