"""Images with a frozen encoder of another library: any callable that turns a batch into rows of numbers.

`LoRanPACClassifier(encoder="vit/")` needs no other library, if the encoder is one that loranpac reads (docs/encoders.md).

The digits and a fixed random network stand for photographs and a pre-trained ViT, so that this runs anywhere. With timm,

    import timm, torch
    vit = timm.create_model("vit_base_patch16_224", pretrained=True, num_classes=0).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(vit))

    @torch.inference_mode()
    def encode(images):
        return vit(torch.stack([transform(image) for image in images]))

replaces `encode` below; with transformers, use `AutoModel` and its `pooler_output`. Tensors need no conversion.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestCentroid

from loranpac import LoRanPACClassifier, bench
from loranpac.features import embed, save

rng = np.random.default_rng(0)
first, second = rng.normal(size=(64, 256)) / 8, rng.normal(size=(256, 192)) / 16


def encode(images):
    return np.maximum(np.array(images) @ first, 0) @ second


images, labels = load_digits(return_X_y=True)
# The encoder runs once; later runs read the features from the file.
x = embed(encode, images / 16, batch_size=128, cache="features.npz", key="random network, digits")
train = np.arange(len(x)) % 4 != 0

model = LoRanPACClassifier(width=2000, encoder="random network")
for new in ([0, 1, 2, 3], [4, 5, 6], [7, 8, 9]):
    part = train & np.isin(labels, new)
    model.partial_fit(x[part], labels[part])
    seen = ~train & np.isin(labels, model.classes_)
    print(f"{len(model.classes_)} classes: {100 * model.score(x[seen], labels[seen]):.1f}%")
means = NearestCentroid().fit(x[train], labels[train]).score(x[~train], labels[~train])
print(f"nearest class mean: {100 * means:.1f}%")

# The paper's protocol on the same features, for several methods.
path = save("digits.npz", x[train], labels[train], x[~train], labels[~train])
print(bench.run(path, ["loranpac", "loranpac-soft", "ranpac", "simplecil"], inc=2, width=1000))
