#!/usr/bin/env python3
"""Makes testdata/images/ and testdata/golden_images.json: small encoded images of
every kind that is decoded, and what Pillow and torchvision make of them.

Run by hand from the root of the repository: python scripts/golden_images.py
"""

import hashlib
import io
import json
import pathlib
import struct
import sys
import zlib

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image, features
from torchvision import transforms as T
from torchvision.transforms import InterpolationMode

ROOT = pathlib.Path(__file__).resolve().parent.parent / "testdata"
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
LITE = ([127 / 255] * 3, [128 / 255] * 3)


def picture(width, height, channels, seed):
    """Waves, edges and a little noise: every frequency and some saturation."""
    rng = np.random.RandomState(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = []
    for c in range(channels):
        fx, fy, phase = rng.uniform(0.02, 0.4, 2).tolist() + [rng.uniform(0, 6)]
        plane = 128 + 150 * np.sin(fx * x + fy * y + phase + 0.001 * x * y)
        plane[(x - width * rng.uniform()) ** 2 + (y - height * rng.uniform()) ** 2 < (min(width, height) / 4) ** 2] = 255 * rng.randint(2)
        planes.append(plane + rng.normal(0, 4, plane.shape))
    return np.clip(np.stack(planes, 2), 0, 255).astype(np.uint8)


def color(width, height, seed):
    return Image.fromarray(picture(width, height, 3, seed))


def grey(width, height, seed):
    return Image.fromarray(picture(width, height, 1, seed)[:, :, 0])


def encoded(image, form, **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def jpeg(image, **options):
    return encoded(image, "JPEG", **{"quality": 75, **options})


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, kind, row, interlace=False, extra=b""):
    """A PNG as Pillow cannot write it. row(y, xs): the packed samples of those columns."""
    passes = [(0, 0, 1, 1)]
    if interlace:  # Adam7: first column, first row, step of columns, step of rows
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    data = b""
    for left, top, across, down in passes:
        xs = list(range(left, width, across))
        if xs:
            data += b"".join(b"\0" + row(y, xs) for y in range(top, height, down))
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlace))
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + extra
            + png_chunk(b"IDAT", zlib.compress(data, 9)) + png_chunk(b"IEND", b""))


def bits(samples, depth):
    """Samples of 1, 2, 4, 8 or 16 bits, packed."""
    if depth == 16:
        return np.asarray(samples, ">u2").tobytes()
    if depth == 8:
        return np.asarray(samples, np.uint8).tobytes()
    each = [format(int(s), f"0{depth}b") for s in samples]
    text = "".join(each)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))


def patched(data, old, new):
    assert data.count(old) == 1, (old, data.count(old))
    return data.replace(old, new)


def tall_chroma(width, height, seed):
    """4:4:0: a 4:2:2 file whose sampling factors and sides are swapped has as many blocks."""
    data = jpeg(color(width, height, seed), subsampling="4:2:2")
    start = data.index(b"\xff\xc0")
    assert width % 16 == 0 and height % 16 == 0 and data[start + 11] == 0x21
    data = bytearray(data)
    data[start + 5:start + 9] = struct.pack(">HH", width, height)  # the new height, the new width
    data[start + 11] = 0x12
    return bytes(data)


def images():
    cmyk = Image.frombytes("CMYK", (50, 37), picture(50, 37, 4, 9).tobytes())
    adobe = jpeg(cmyk)
    deep = np.random.RandomState(20).randint(0, 65536, (23, 31, 3)).astype(np.uint16)
    # Mostly small, for two-byte grey is clipped at 255.
    deep_grey = (np.random.RandomState(21).randint(0, 512, (23, 31))).astype(np.uint16)
    deep_grey[::5] = 40000
    indices = np.random.RandomState(22).randint(0, 16, (19, 27))
    palette = png_chunk(b"PLTE", np.random.RandomState(23).randint(0, 256, 11 * 3).astype(np.uint8).tobytes())
    alpha = np.dstack([picture(45, 33, 3, 24), picture(45, 33, 1, 25)])
    small = {depth: np.random.RandomState(depth).randint(0, 1 << depth, (21, 29)) for depth in (1, 2, 4)}
    woven = picture(37, 29, 3, 26)
    yield "rgb-420.jpg", jpeg(color(301, 227, 1))
    yield "rgb-444.jpg", jpeg(color(97, 64, 2), subsampling="4:4:4", quality=90)
    yield "rgb-422.jpg", jpeg(color(75, 50, 3), subsampling="4:2:2")
    yield "rgb-440.jpg", tall_chroma(64, 48, 4)
    yield "rgb-progressive.jpg", jpeg(color(133, 241, 5), progressive=True)
    yield "rgb-restart.jpg", jpeg(color(80, 61, 6), restart_marker_blocks=3)
    yield "rgb-stored.jpg", jpeg(color(40, 40, 7), keep_rgb=True)
    yield "rgb-exif-rotated.jpg", jpeg(color(60, 40, 8), exif=rotated())
    yield "rgb-tiny.jpg", jpeg(color(3, 2, 30))
    yield "rgb-strip.jpg", jpeg(color(7, 400, 31))
    yield "rgb-exact.jpg", jpeg(color(224, 224, 32), quality=40)
    yield "rgb-shorter-exact.jpg", jpeg(color(256, 300, 33), quality=40)
    yield "grey.jpg", jpeg(grey(83, 120, 10))
    yield "grey-progressive.jpg", jpeg(grey(64, 65, 11), progressive=True)
    yield "cmyk.jpg", adobe
    # The same data taken as YCCK.
    yield "ycck.jpg", patched(adobe, b"Adobe\0\x64\0\0\0\0\0", b"Adobe\0\x64\0\0\0\0\2")
    yield "rgb.png", encoded(color(45, 33, 12), "PNG")
    yield "rgba.png", encoded(Image.fromarray(alpha, "RGBA"), "PNG")
    yield "grey.png", encoded(grey(41, 30, 13), "PNG")
    yield "grey-alpha.png", encoded(Image.fromarray(alpha[:, :, 2:], "LA"), "PNG")
    yield "palette.png", encoded(color(52, 39, 14).quantize(60), "PNG")
    yield "palette-transparent.png", encoded(color(30, 20, 15).quantize(9), "PNG", transparency=3)
    yield "palette-4-bit-short.png", png(27, 19, 4, 3, lambda y, xs: bits(indices[y, xs], 4), extra=palette)
    for depth, plane in small.items():
        yield f"grey-{depth}-bit.png", png(29, 21, depth, 0, lambda y, xs, d=depth, p=plane: bits(p[y, xs], d))
    yield "grey-16-bit.png", png(31, 23, 16, 0, lambda y, xs: bits(deep_grey[y, xs], 16))
    yield "grey-alpha-16-bit.png", png(31, 23, 16, 4, lambda y, xs: bits(deep[y, xs, :2].ravel(), 16))
    yield "rgb-16-bit.png", png(31, 23, 16, 2, lambda y, xs: bits(deep[y, xs].ravel(), 16))
    yield "rgb-interlaced.png", png(37, 29, 8, 2, lambda y, xs: bits(woven[y, xs].ravel(), 8), interlace=True)
    yield "grey-1-bit-interlaced.png", png(29, 21, 1, 0, lambda y, xs: bits(small[1][y, xs], 1), interlace=True)


def rotated():
    exif = Image.Exif()
    exif[274] = 6
    return exif


def preset(resize="none", size=(0, 0), interpolation="bilinear", crop=(0, 0), channels=3, norm=IMAGENET):
    return {"resize": resize, "height": size[0], "width": size[1], "interpolation": interpolation,
            "cropHeight": crop[0], "cropWidth": crop[1], "channels": channels,
            "mean": norm[0][:channels], "std": norm[1][:channels]}


PRESETS = {
    "none": preset(),
    "none-grey": preset(channels=1),
    "imagenet": preset("shorter", (256, 0), crop=(224, 224)),
    "imagenet-squash": preset("squash", (224, 224)),
    "tf-lite": preset("shorter", (256, 0), crop=(224, 224), norm=LITE),
    "bicubic-256-224": preset("shorter", (256, 0), "bicubic", (224, 224), norm=LITE),
    "bicubic-small": preset("squash", (17, 23), "bicubic"),
    "bilinear-small": preset("shorter", (9, 0)),
    "bilinear-grey": preset("squash", (28, 28), channels=1, norm=([0.1307], [0.3081])),
    "bicubic-grey-up": preset("squash", (301, 150), "bicubic", channels=1, norm=([0.5], [0.5])),
    "crop-padded": preset(crop=(63, 90)),
    "one-side": preset("squash", (33, 120)),
}


def transform(p):
    steps = []
    mode = {"bilinear": InterpolationMode.BILINEAR, "bicubic": InterpolationMode.BICUBIC}[p["interpolation"]]
    if p["resize"] == "shorter":
        steps.append(T.Resize(p["height"], interpolation=mode))
    if p["resize"] == "squash":
        steps.append(T.Resize((p["height"], p["width"]), interpolation=mode))
    if p["cropHeight"]:
        steps.append(T.CenterCrop((p["cropHeight"], p["cropWidth"])))
    return T.Compose(steps), T.Compose([T.ToTensor(), T.Normalize(p["mean"], p["std"])])


def sha256(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def golden(data):
    results = {}
    for name, p in PRESETS.items():
        pixels, values = transform(p)
        image = pixels(Image.open(io.BytesIO(data)).convert("RGB" if p["channels"] == 3 else "L"))
        results[name] = {"height": image.height, "width": image.width, "pixels": sha256(np.asarray(image)),
                         "values": sha256(values(image).numpy().astype("<f4"))}
    return results


def main():
    (ROOT / "images").mkdir(exist_ok=True)
    listed = []
    for name, data in images():
        (ROOT / "images" / name).write_bytes(data)
        listed.append({"file": name, "results": golden(data)})
    for name in ("chelsea.png", "coffee.png", "rocket.jpg"):
        listed.append({"file": "../embedded/" + name, "results": golden((ROOT / "embedded" / name).read_bytes())})
    report = {
        "generator": "scripts/golden_images.py",
        "versions": {"pillow": PIL.__version__, "libjpeg-turbo": features.version("libjpeg_turbo"),
                     "torch": torch.__version__.split("+")[0], "torchvision": torchvision.__version__.split("+")[0]},
        "presets": PRESETS,
        "images": listed,
    }
    (ROOT / "golden_images.json").write_text(json.dumps(report, indent=1) + "\n")
    print(len(listed), "images,", sum(len(i["results"]) for i in listed), "results")


if __name__ == "__main__":
    sys.exit(main())
