"""Compare decoding and preprocessing of images with PIL and torchvision.

    pip install numpy pillow torch torchvision
    cargo build --release -p loranpac-encode --example preprocess
    python bench/preprocess_parity.py target/release/examples/preprocess ../shared/data/raw

The folder has tar archives of images. 200 of them are written in all formats and kinds of pixels, and read by both.
Differences are in units of 1/255, after decoding alone ("pixels") and after resizing and cropping. The exit code is 1 if
one exceeds 1/255.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from torchvision import transforms

PER_KIND = 5
FILTERS = {
    "bilinear": transforms.InterpolationMode.BILINEAR,
    "bicubic": transforms.InterpolationMode.BICUBIC,
    "lanczos": transforms.InterpolationMode.LANCZOS,
    "box": transforms.InterpolationMode.BOX,
    "hamming": transforms.InterpolationMode.HAMMING,
    "nearest": transforms.InterpolationMode.NEAREST,
}


def noisy(image, bits):
    """The picture with that many bits per channel, so that the lower bits are not zero."""
    pixels = np.asarray(image, dtype=np.uint32)
    lower = (pixels * 2654435761 + np.arange(pixels.size, dtype=np.uint32).reshape(pixels.shape) * 40503) & 0xFF
    return ((pixels << (bits - 8)) | lower).astype(np.uint16)


def rgb16(image, path):
    """A PNG of 16 bits per channel, which PIL cannot write."""
    import struct
    import zlib

    pixels = noisy(image, 16).astype(">u2")
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


def transparent(image):
    image = image.convert("RGBA")
    alpha = np.linspace(0, 255, image.width * image.height).reshape(image.height, image.width)
    image.putalpha(Image.fromarray(alpha.astype(np.uint8)))
    return image


def odd(image):
    """A size that is not a multiple of anything; for small images a very small one."""
    return image.crop((0, 0, 3, 1)) if image.width < 100 else image.crop((0, 0, 111, 87))


def oriented(number):
    exif = Image.Exif()
    exif[0x0112] = number
    return exif


def kinds():
    """Name of the kind, extension, and a function that writes an image."""
    save = lambda change=lambda i: i, **options: lambda image, path: change(image).save(path, **options)
    yield "jpeg original", "jpg", None
    yield "jpeg 4:2:0 q75", "jpg", save(quality=75)
    yield "jpeg 4:4:4 q90", "jpg", save(quality=90, subsampling=0)
    yield "jpeg 4:2:2 q85", "jpg", save(quality=85, subsampling=1)
    yield "jpeg progressive", "jpg", save(quality=80, progressive=True)
    yield "jpeg restarts", "jpg", save(quality=80, restart_marker_blocks=3)
    yield "jpeg 4:2:0 odd", "jpg", save(odd, quality=80)
    yield "jpeg 4:2:2 odd", "jpg", save(odd, quality=80, subsampling=1, progressive=True)
    yield "jpeg grey", "jpg", save(lambda i: i.convert("L"), quality=85)
    yield "jpeg CMYK", "jpg", save(lambda i: i.convert("CMYK"), quality=90)
    for number in range(2, 9):
        yield f"jpeg orientation {number}", "jpg", save(quality=85, exif=oriented(number))
    yield "png", "png", save()
    yield "png grey", "png", save(lambda i: i.convert("L"))
    yield "png 1 bit", "png", save(lambda i: i.convert("1"))
    yield "png palette", "png", save(lambda i: i.quantize(200))
    yield "png alpha", "png", save(transparent)
    yield "png grey alpha", "png", save(lambda i: transparent(i).convert("LA"))
    yield "png 16 bit", "png", rgb16
    yield "png grey 16 bit", "png", save(lambda i: Image.fromarray(noisy(i.convert("L"), 16)))
    yield "png orientation 6", "png", save(exif=oriented(6))
    yield "webp lossy", "webp", save(quality=80)
    yield "webp lossless", "webp", save(lossless=True)
    yield "webp alpha", "webp", save(transparent, quality=80)
    yield "webp orientation 8", "webp", save(quality=80, exif=oriented(8))
    yield "bmp", "bmp", save()
    yield "bmp palette", "bmp", save(lambda i: i.quantize(200))
    yield "gif", "gif", save(lambda i: i.quantize(200))
    yield "tiff", "tif", save()
    yield "tiff lzw", "tif", save(compression="tiff_lzw")
    yield "tiff deflate", "tif", save(compression="tiff_adobe_deflate")
    yield "tiff grey", "tif", save(lambda i: i.convert("L"))
    yield "tiff grey 16 bit", "tif", save(lambda i: Image.fromarray(noisy(i.convert("L"), 16)))
    yield "tiff alpha", "tif", save(transparent)
    yield "tiff CMYK", "tif", save(lambda i: i.convert("CMYK"))
    yield "tiff orientation 3", "tif", save(exif=oriented(3))


def sources(folder):
    """Images of all archives in turn, with their bytes."""
    archives = []
    for path in sorted(folder.glob("*-images.tar")):
        archive = tarfile.open(path)
        files = sorted((m for m in archive if m.isfile()), key=lambda m: m.name)
        archives.append((archive, files[:: max(1, len(files) // 200)]))
    at = 0
    while True:
        archive, files = archives[at % len(archives)]
        yield archive.extractfile(files[(at // len(archives) * 37) % len(files)]).read()
        at += 1


def load(path):
    image = ImageOps.exif_transpose(Image.open(path))
    if image.mode.startswith("I;16"):
        # PIL would clip these at 255.
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    return image.convert("RGB")


def ours(binary, settings, names, folder):
    out = folder / "out.npz"
    subprocess.run([binary, settings, out], input="\n".join(map(str, names)), text=True, check=True)
    return np.load(out)["x"]


def main():
    binary, data = sys.argv[1], Path(sys.argv[2])
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        files, images = [], sources(data)
        for kind, extension, write in kinds():
            for number in range(PER_KIND):
                raw = next(images)
                path = folder / f"{kind.replace(' ', '-').replace(':', '')}-{number}.{extension}"
                if write is None:
                    while not raw.startswith(b"\xff\xd8"):
                        raw = next(images)
                    path.write_bytes(raw)
                else:
                    write(Image.open(io.BytesIO(raw)).convert("RGB"), path)
                files.append((kind, path))
        pictures = [load(path) for _, path in files]
        groups = sorted({kind for kind, _ in files}, key=[kind for kind, _ in files].index)
        print(f"{len(files)} images")
        jobs = [("pixels", "resize=keep,crop=64,filter=nearest", transforms.CenterCrop(64))]
        for name, mode in FILTERS.items():
            for resize, crop in [(256, 224), (224, 224), (96, 80), (47, 33)]:
                steps = [transforms.Resize(resize, mode), transforms.CenterCrop(crop)]
                jobs.append((f"{name} {resize}/{crop}", f"resize={resize},crop={crop},filter={name}", transforms.Compose(steps)))
            steps = [transforms.Resize((120, 200), mode), transforms.CenterCrop((120, 200))]
            jobs.append((f"{name} 120x200", f"resize=120x200,crop=120x200,filter={name}", transforms.Compose(steps)))
        table = {}
        for name, settings, steps in jobs:
            x = ours(binary, settings, [path for _, path in files], folder)
            tensor = transforms.Compose([steps, transforms.ToTensor()])
            for (kind, _), row, picture in zip(files, x, pictures):
                reference = tensor(picture).numpy()
                difference = np.abs(row.reshape(reference.shape) - reference) * 255
                entry = table.setdefault(kind, {})
                entry[name] = max(entry.get(name, 0.0), float(difference.max()))
                # The share of values that differ by more than 1/255.
                key = name + " share"
                entry[key] = max(entry.get(key, 0.0), float((difference > 1.001).mean()))
        for kind in groups:
            entry = table[kind]
            resized = max(entry[name] for name, _, _ in jobs[1:])
            share = max(entry[name + " share"] for name, _, _ in jobs[1:])
            where = max((name for name, _, _ in jobs[1:]), key=lambda n: entry[n])
            print(f"{kind:22} pixels {entry['pixels']:4.1f}  resized {resized:4.1f} ({where})  share above 1/255 {share:.5f}")
            worst = max(worst, resized)
        print(f"largest difference {worst:.2f}/255")
    sys.exit(worst > 1.001)


if __name__ == "__main__":
    main()
