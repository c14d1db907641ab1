"""Print features of texts by hashed n-grams, as JSON: the non-zero ones of `text-ngrams`.

    python bench/reference/ngrams.py > crates/loranpac-encode/tests/golden/ngrams.json
"""

import json
import math
from collections import Counter

DIM = 2048
TEXTS = ["Book a table for TWO, please: two!", "", "naïve Ünïcode 日本語 x2", "a"]


def hashed(kind, text):
    mask, h = (1 << 64) - 1, 0xCBF29CE484222325 ^ kind
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & mask
    h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & mask
    h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & mask
    return ((h ^ (h >> 31)) & ~1) | kind


def features(text):
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    grams = [] if words else [(0, "")]
    for n in (1, 2):
        grams += [(0, "".join(w + " " for w in words[i : i + n])) for i in range(len(words) - n + 1)]
    for word in words:
        padded = f" {word} "
        grams += [(1, padded[i : i + n]) for n in (3, 4, 5) for i in range(len(padded) - n + 1)]
    x = [0.0] * DIM
    for (kind, gram), count in Counter(grams).items():
        h = hashed(kind, gram)
        x[h >> 53] += (-1 if h & 2 else 1) * (1 + math.log(count))
    length = math.sqrt(sum(v * v for v in x))
    return [[at, v / length] for at, v in enumerate(x) if v]


print(json.dumps([{"text": text, "features": features(text)} for text in TEXTS], separators=(",", ":")))
