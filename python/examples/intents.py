"""Texts with new intents every week.

The encoder is built in, so that this runs anywhere: it recognises words, but not their meaning. With the folder of a
sentence encoder, such as all-MiniLM-L6-v2 as model hubs offer it,

    model = LoRanPACClassifier(width=2000, encoder="all-MiniLM-L6-v2/")

recognises meaning; nothing else changes.
"""

import numpy as np

from loranpac import LoRanPACClassifier

WORDS = {
    "book_flight": ["fly", "ticket", "airport", "flight", "seat"],
    "cancel": ["cancel", "drop", "refund", "undo", "back"],
    "weather": ["rain", "sunny", "forecast", "cold", "umbrella"],
    "play_music": ["song", "play", "album", "volume", "band"],
    "balance": ["money", "account", "balance", "bank", "left"],
    "alarm": ["wake", "alarm", "morning", "clock", "snooze"],
}
WEEKS = [["book_flight", "cancel"], ["weather", "play_music"], ["balance", "alarm"]]


def sentences(intent, count, rng):
    filler = ["please", "the", "can", "you", "now", "my"]
    return [" ".join([*rng.choice(WORDS[intent], 2), *rng.choice(filler, 3)]) for _ in range(count)]


rng = np.random.default_rng(0)
model = LoRanPACClassifier(width=2000, encoder="text-ngrams")
known = []
for week, intents in enumerate(WEEKS, 1):
    known += intents
    texts = [text for intent in intents for text in sentences(intent, 30, rng)]
    model.partial_fit(texts, np.repeat(intents, 30))
    model.save("intents.lrp")  # atomic; from the second week on only the changes are written

    questions = [text for intent in known for text in sentences(intent, 50, rng)]
    accuracy = model.score(questions, np.repeat(known, 50))
    print(f"week {week}: {len(known)} intents, {100 * accuracy:.1f}% of {len(questions)} new sentences right")

print(model.verdict_)
model = LoRanPACClassifier.load("intents.lrp")  # finds the encoder by itself
unfamiliar = ["parsley sage rosemary thyme", "can you play my song now"]
for text, novelty, intent in zip(unfamiliar, model.novelty(unfamiliar), model.predict(unfamiliar)):
    print(f"{text!r}: {intent}, novelty {novelty:.2f}")
