"""Federated sites: each learns its own samples, and only models are exchanged.

`loranpac merge a.lrp b.lrp -o all.lrp` on the command line, `merge_models` and `model.merge` do the same thing, in any order
and in any grouping, so that any scheduler works. With Ray:

    import ray

    @ray.remote
    def learn(site, path):
        LoRanPACClassifier(width=2000).fit(*load(site)).save(path)
        return path

    @ray.remote
    def merge(paths, out):
        return merge_models(paths, out, prepare=False)

    paths = [learn.remote(site, f"/shared/{site}.lrp") for site in sites]
    halves = [merge.remote(ray.get(paths[0::2]), "/shared/a.lrp"), merge.remote(ray.get(paths[1::2]), "/shared/b.lrp")]
    merge_models(ray.get(halves), "/shared/all.lrp")

and with Dask: loranpac.dask.fit(shards, "/shared/all.lrp").
"""

import numpy as np

from loranpac import LoRanPACClassifier, merge_models

rng = np.random.default_rng(0)
centres = rng.normal(size=(12, 32))


def observed(species, count):
    y = np.repeat(species, count)
    return (centres[y] + 0.6 * rng.normal(size=(len(y), 32))).astype(np.float32), y


# Some species live at one site only, some at several.
sites = {"paris": [0, 1, 2, 3, 4], "lima": [3, 4, 5, 6, 7], "oslo": [0, 7, 8, 9, 10, 11]}
test, truth = observed(np.arange(12), 50)
everything = LoRanPACClassifier(width=2000)
for site, species in sites.items():
    x, y = observed(species, 40)
    alone = LoRanPACClassifier(width=2000).fit(x, y).save(f"{site}.lrp")
    everything.partial_fit(x, y)
    print(f"{site} alone: {100 * alone.score(test, truth):.1f}% of 12 species")

merge_models([f"{site}.lrp" for site in sites], "all.lrp")
merged = LoRanPACClassifier.load("all.lrp")
print(f"merged: {100 * merged.score(test, truth):.1f}%")
apart = np.abs(merged.decision_function(test) - everything.decision_function(test)).max()
print(f"scores differ by {apart:.1e} from those of one model that learned all samples")
