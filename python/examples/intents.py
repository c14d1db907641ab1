"""Intents on sentence embeddings, with new intents every week.

The embeddings are synthetic, so that this runs anywhere. With a real encoder,

    from sentence_transformers import SentenceTransformer
    encoder = SentenceTransformer("all-MiniLM-L6-v2")
    embed(encoder.encode, texts, cache="texts.npz", key="all-MiniLM-L6-v2")

replaces `encode` below.
"""

import hashlib

import numpy as np

from loranpac import LoRanPACClassifier
from loranpac.features import embed

WORDS = {
    "book_flight": ["fly", "ticket", "airport", "flight", "seat"],
    "cancel": ["cancel", "drop", "refund", "undo", "back"],
    "weather": ["rain", "sunny", "forecast", "cold", "umbrella"],
    "play_music": ["song", "play", "album", "volume", "band"],
    "balance": ["money", "account", "balance", "bank", "left"],
    "alarm": ["wake", "alarm", "morning", "clock", "snooze"],
}
WEEKS = [["book_flight", "cancel"], ["weather", "play_music"], ["balance", "alarm"]]


def vector(word):
    """A fixed random vector for each word."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "little")
    return np.random.default_rng(seed).normal(size=64)


def encode(texts):
    vectors = np.array([np.mean([vector(word) for word in text.split()], axis=0) for text in texts])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def sentences(intent, count, rng):
    filler = ["please", "the", "can", "you", "now", "my"]
    return [" ".join([*rng.choice(WORDS[intent], 2), *rng.choice(filler, 3)]) for _ in range(count)]


rng = np.random.default_rng(0)
model = LoRanPACClassifier(width=2000)
known = []
for week, intents in enumerate(WEEKS, 1):
    known += intents
    texts = [text for intent in intents for text in sentences(intent, 30, rng)]
    model.partial_fit(embed(encode, texts), np.repeat(intents, 30))
    model.save("intents.lrp")  # atomic; from the second week on only the changes are written

    questions = [text for intent in known for text in sentences(intent, 50, rng)]
    accuracy = model.score(embed(encode, questions), np.repeat(known, 50))
    print(f"week {week}: {len(known)} intents, {100 * accuracy:.1f}% of {len(questions)} new sentences right")

print(model.verdict_)
unfamiliar = ["parsley sage rosemary thyme", "can you play my song now"]
for text, novelty, intent in zip(unfamiliar, model.novelty(encode(unfamiliar)), model.predict(encode(unfamiliar))):
    print(f"{text!r}: {intent}, novelty {novelty:.2f}")
