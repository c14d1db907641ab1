"""Independent computation of the projection's test vectors (crates/loranpac/src/lift/projection.rs).

ChaCha8 from its definition (key = the seed in little-endian bytes, zero padded; 64-bit block counter; the row as
the 64-bit stream), two 64-bit words per pair of normals, Box-Muller in double precision.

    python bench/reference/projection.py
"""

import math
import struct

import numpy as np


def chacha8(seed, stream, words):
    key = struct.unpack("<8I", seed.to_bytes(8, "little") + bytes(24))
    constants = struct.unpack("<4I", b"expand 32-byte k")
    out, block = [], 0
    while len(out) < words:
        start = [*constants, *key, block & 0xFFFFFFFF, block >> 32, stream & 0xFFFFFFFF, stream >> 32]
        x = list(start)

        def quarter(a, b, c, d):
            for p, q, r, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[p] = (x[p] + x[q]) & 0xFFFFFFFF
                x[r] ^= x[p]
                x[r] = ((x[r] << turn) | (x[r] >> (32 - turn))) & 0xFFFFFFFF

        for _ in range(4):
            for i in range(4):
                quarter(i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        out += [(a + b) & 0xFFFFFFFF for a, b in zip(x, start)]
        block += 1
    return out[:words]


def row(seed, index, length):
    pairs = (length + 1) // 2
    words = chacha8(seed, index, 4 * pairs)
    u64 = [words[2 * i] | words[2 * i + 1] << 32 for i in range(2 * pairs)]
    values = []
    for i in range(pairs):
        u, v = ((u64[2 * i] >> 11) + 1) * 2.0**-53, (u64[2 * i + 1] >> 11) * 2.0**-53
        radius = math.sqrt(-2.0 * math.log(u))
        values += [radius * math.cos(2 * math.pi * v), radius * math.sin(2 * math.pi * v)]
    return np.array(values[:length], dtype=np.float32)


if __name__ == "__main__":
    for seed, index in ((0, 0), (0, 1), (1993, 99_999), (2**64 - 1, 2**40)):
        print(f"({seed}, {index}, [{', '.join(format(v, '.9g') for v in row(seed, index, 5))}]),")
