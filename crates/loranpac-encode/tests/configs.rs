//! Preprocessing from timm's and transformers' files.

use std::fs;

use loranpac_encode::{Filter, Preprocess, Resize};

const IMAGENET: ([f32; 3], [f32; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

fn expect(resize: Resize, crop: usize, filter: Filter, (mean, std): ([f32; 3], [f32; 3])) -> Preprocess {
    Preprocess { resize, filter, crop: (crop, crop), scale: 1.0 / 255.0, mean, std }
}

#[test]
fn timm_configurations_are_understood() {
    let check = |json: &str, expected: Preprocess| {
        assert_eq!(Preprocess::from_timm("config.json", json).unwrap(), expected, "{json}");
    };
    // vit_base_patch16_224.augreg_in21k
    check(
        r#"{"architecture": "vit_base_patch16_224", "num_features": 768, "pretrained_cfg": {"tag": "augreg_in21k",
            "input_size": [3, 224, 224], "fixed_input_size": true, "interpolation": "bicubic", "crop_pct": 0.9,
            "crop_mode": "center", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "pool_size": null}}"#,
        expect(Resize::Shorter(248), 224, Filter::Bicubic, ([0.5; 3], [0.5; 3])),
    );
    // deit3, and vit_small_patch14_dinov2
    check(
        r#"{"pretrained_cfg": {"input_size": [3, 518, 518], "interpolation": "bicubic", "crop_pct": 1.0,
            "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}}"#,
        expect(Resize::Shorter(518), 518, Filter::Bicubic, IMAGENET),
    );
    check(
        r#"{"input_size": [3, 240, 240], "interpolation": "bilinear", "crop_mode": "squash", "crop_pct": 0.95}"#,
        expect(Resize::Exact(252, 252), 240, Filter::Bilinear, IMAGENET),
    );
    check("{}", expect(Resize::Shorter(256), 224, Filter::Bicubic, IMAGENET));
}

#[test]
fn transformers_configurations_are_understood() {
    let check = |json: &str, expected: Preprocess| {
        assert_eq!(Preprocess::from_transformers("preprocessor_config.json", json).unwrap(), expected, "{json}");
    };
    // google/vit-base-patch16-224
    check(
        r#"{"do_normalize": true, "do_rescale": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5],
            "image_processor_type": "ViTImageProcessor", "image_std": [0.5, 0.5, 0.5], "resample": 2,
            "rescale_factor": 0.00392156862745098, "size": {"height": 224, "width": 224}}"#,
        expect(Resize::Exact(224, 224), 224, Filter::Bilinear, ([0.5; 3], [0.5; 3])),
    );
    // openai/clip-vit-base-patch32
    check(
        r#"{"crop_size": 224, "do_center_crop": true, "do_normalize": true, "do_resize": true,
            "feature_extractor_type": "CLIPFeatureExtractor", "resample": 3, "size": 224,
            "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}"#,
        Preprocess::preset("clip").unwrap(),
    );
    // facebook/dinov2-small
    check(
        r#"{"crop_size": {"height": 224, "width": 224}, "do_center_crop": true, "do_convert_rgb": true,
            "do_normalize": true, "do_rescale": true, "do_resize": true, "image_mean": [0.485, 0.456, 0.406],
            "image_processor_type": "BitImageProcessor", "image_std": [0.229, 0.224, 0.225], "resample": 3,
            "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 256}}"#,
        expect(Resize::Shorter(256), 224, Filter::Bicubic, IMAGENET),
    );
    // facebook/deit-tiny-patch16-224: both sides become 256
    check(
        r#"{"crop_size": 224, "do_center_crop": true, "do_normalize": true, "do_resize": true, "resample": 3,
            "feature_extractor_type": "DeiTFeatureExtractor", "image_mean": [0.485, 0.456, 0.406],
            "image_std": [0.229, 0.224, 0.225], "size": 256}"#,
        expect(Resize::Exact(256, 256), 224, Filter::Bicubic, IMAGENET),
    );
    // facebook/convnext-tiny-224
    check(
        r#"{"crop_pct": 0.875, "do_normalize": true, "do_resize": true, "feature_extractor_type":
            "ConvNextFeatureExtractor", "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
            "resample": 3, "size": 224}"#,
        expect(Resize::Shorter(256), 224, Filter::Bicubic, IMAGENET),
    );
    check(
        r#"{"do_resize": false, "crop_size": [64, 64], "do_normalize": false, "do_rescale": false}"#,
        Preprocess { scale: 1.0, ..expect(Resize::Keep, 64, Filter::Bilinear, ([0.0; 3], [1.0; 3])) },
    );
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let timm = |json: &str, expected: &str| {
        let message = Preprocess::from_timm("a/config.json", json).unwrap_err().to_string();
        assert!(message.starts_with("a/config.json: ") && message.contains(expected), "{json}: {message}");
    };
    timm(r#"{"pretrained_cfg": 3}"#, "pretrained_cfg is not an object");
    timm(r#"{"input_size": [1, 28, 28]}"#, "[3, height, width] is needed");
    timm(r#"{"input_size": [3, 384, 128]}"#, "not square");
    timm(r#"{"crop_mode": "border"}"#, "crop_mode is \"border\"; center and squash");
    timm(r#"{"interpolation": "sharp"}"#, "\"sharp\" is unknown");
    timm(r#"{"crop_pct": 0}"#, "crop_pct is 0");
    timm(r#"{"mean": [0.5]}"#, "three numbers");
    timm("[]", "not a JSON object");
    let transformers = |json: &str, expected: &str| {
        let message = Preprocess::from_transformers("p.json", json).unwrap_err().to_string();
        assert!(message.starts_with("p.json: ") && message.contains(expected), "{json}: {message}");
    };
    transformers("{}", "no key size");
    transformers(r#"{"size": {"shortest_edge": 224}, "resample": 3}"#, "no fixed size");
    transformers(r#"{"size": {"longest_edge": 224}, "resample": 3}"#, "height and width");
    transformers(r#"{"size": 224}"#, "no key resample");
    transformers(r#"{"size": 224, "resample": 9}"#, "interpolation 9 is unknown");
    transformers(r#"{"size": 224, "resample": 3, "do_pad": true}"#, "do_pad is not supported");
    transformers(r#"{"size": 224, "resample": 3, "do_normalize": true}"#, "no key image_mean");
    transformers(r#"{"size": 1000000, "resample": 3}"#, "1000000 pixels");
}

#[test]
fn the_folder_of_a_model_is_searched() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Preprocess::from_folder(folder.path()).unwrap(), None);
    fs::write(folder.path().join("config.json"), r#"{"model_type": "bert"}"#).unwrap();
    assert_eq!(Preprocess::from_folder(folder.path()).unwrap(), None);
    fs::write(folder.path().join("config.json"), r#"{"pretrained_cfg": {"crop_pct": 1}}"#).unwrap();
    assert_eq!(Preprocess::from_folder(folder.path()).unwrap().unwrap().resize, Resize::Shorter(224));
    let other = r#"{"size": {"height": 96, "width": 64}, "resample": 0}"#;
    fs::write(folder.path().join("preprocessor_config.json"), other).unwrap();
    assert_eq!(Preprocess::from_folder(folder.path()).unwrap().unwrap().size(), (96, 64));
    fs::write(folder.path().join("preprocessor_config.json"), "{").unwrap();
    let message = Preprocess::from_folder(folder.path()).unwrap_err().to_string();
    assert!(message.contains("preprocessor_config.json"), "{message}");
}
