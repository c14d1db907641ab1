//! Feature files of data sets, each computed once for an encoder.

use std::path::{Path, PathBuf};

use loranpac_data::formats::{Column, write_npz};
use loranpac_data::{AtomicFile, Dataset};
use loranpac_encode::{Embedding, Encoder, FeatureSet, Inputs, hex};

use super::find::ImageSet;
use crate::error::Error;
use crate::source::{Source, plain};

/// The paper's encoders: the name of the weights in timm since version 0.9, and the paper's.
const PAPERS: &[(&str, &str)] = &[
    ("vit_base_patch16_224.augreg_in21k_ft_in1k", "vit_base_patch16_224"),
    ("vit_base_patch16_224.augreg_in21k", "vit_base_patch16_224_in21k"),
];

/// The array of a feature file that identifies its inputs: digests of encoder and layers and of the listing, and the
/// number of inputs that were skipped.
const INPUTS: &str = "inputs";

/// A folder with the feature files of one encoder, `KEY-ENCODER.npz`.
pub struct FeatureFolder {
    folder: PathBuf,
    backbone: String,
    /// Of the encoder and its layers.
    digest: String,
}

impl FeatureFolder {
    /// The folder for an encoder and its layers below `out`. Another encoder, or another preprocessing, has another folder.
    pub fn new(out: &Path, encoder: &dyn Encoder, layers: Option<&[usize]>) -> FeatureFolder {
        let digest = hex(&Embedding::cache_digest(encoder, layers));
        let name = encoder.name();
        let backbone = PAPERS.iter().find(|(weights, _)| *weights == name).map_or(name, |(_, papers)| papers);
        let folder = out.join("features").join(format!("{}-{}", plain(name), &digest[..8]));
        FeatureFolder { folder, backbone: plain(backbone), digest }
    }

    /// The feature file of a data set as a source, whether it exists or not.
    pub fn source(&self, set: &ImageSet) -> Source {
        Source::file(&set.key, &self.backbone, &self.path(set))
    }

    /// Whether the feature file of a data set exists and belongs to these inputs. A file from which inputs are missing
    /// counts if `skip_bad`.
    pub fn holds(&self, set: &ImageSet, inputs: &Inputs, skip_bad: bool) -> bool {
        let Some(found) = Dataset::texts(&self.path(set), INPUTS) else { return false };
        let Some(outline) = inputs.outline() else { return false };
        matches!(&found[..], [encoder, listing, skipped]
            if *encoder == self.digest && *listing == hex(&outline.digest) && (skip_bad || skipped == "0"))
    }

    /// Writes the feature file of a data set, all or nothing. `listing` is the digest of the outline of its inputs.
    pub fn write(&self, set: &ImageSet, listing: &[u8; 32], features: FeatureSet) -> Result<(), Error> {
        let path = self.path(set);
        let failed = |source| Error::Write { path: path.clone(), source };
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        let inputs =
            vec![self.digest.as_str().into(), hex(listing).into(), features.skipped().len().to_string().into()];
        let columns = std::iter::once((INPUTS.to_owned(), Column::Labels(inputs))).chain(features.columns());
        let mut file = AtomicFile::create(&path).map_err(failed)?;
        write_npz(columns, &mut file).and_then(|()| file.replace()).map_err(failed)
    }

    fn path(&self, set: &ImageSet) -> PathBuf {
        self.folder.join(format!("{}-{}.npz", plain(&set.key), self.backbone))
    }
}

#[cfg(test)]
mod tests {
    use loranpac_encode::{Batch, Layout, Modality};

    use super::*;

    struct Named(&'static str, u8);

    impl Encoder for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn modality(&self) -> Modality {
            Modality::Image
        }
        fn dim(&self) -> usize {
            1
        }
        fn digest(&self) -> [u8; 32] {
            [self.1; 32]
        }
        fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, loranpac_encode::Error> {
            Ok(vec![0.0; batch.len() * layers.len()])
        }
    }

    #[test]
    fn files_have_the_papers_names_of_encoders_and_a_folder_for_each_digest() {
        let set = ImageSet { key: "cub200".to_owned(), path: "cub".into(), layout: Layout::Usual };
        let folder = |name, digest| FeatureFolder::new(Path::new("out"), &Named(name, digest), None);
        let file = |name| folder(name, 1).path(&set).file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(file("vit_base_patch16_224.augreg_in21k_ft_in1k"), "cub200-vit_base_patch16_224.npz");
        assert_eq!(file("vit_base_patch16_224.augreg_in21k"), "cub200-vit_base_patch16_224_in21k.npz");
        assert_eq!(
            file("vit_base_patch16_224.augreg2_in21k_ft_in1k").len(),
            "cub200-.augreg2_in21k_ft_in1k.npz".len() + 20
        );
        assert_eq!(file("http://host/v1?model=a b"), "cub200-http___host_v1_model_a_b.npz");
        assert_ne!(folder("vit", 1).path(&set), folder("vit", 2).path(&set), "another preprocessing");
        let source = folder("vit_base_patch16_224.augreg_in21k_ft_in1k", 1).source(&set);
        assert_eq!((source.key.as_str(), source.backbone.as_str()), ("cub200", "vit_base_patch16_224"));
    }
}
