//! Images and texts in, labels out: models with an encoder.

mod common;

use std::fs;
use std::path::Path;

use common::raw::{Place, bitmap, images, json_of, lines, texts, vit};
use common::stdout;

#[test]
fn texts_become_labels_in_three_commands() {
    let place = Place::new();
    let (model, table) = place.tickets();
    let eval: serde_json::Value = serde_json::from_str(&place.say(&["eval", &model, &table, "--json"])).unwrap();
    assert_eq!((&eval["samples"], eval["accuracy"].as_f64().unwrap() > 95.0), (&30.into(), true), "{eval}");
    let new = place.at("new.csv");
    fs::write(&new, "message\nthe courier is late\nI cannot login\n").unwrap();
    let answers = lines(&place.say(&["predict", &model, &new]));
    assert_eq!(answers[0], ["row", "label", "score"]);
    assert_eq!((answers[1][1].as_str(), answers[2][1].as_str(), answers.len()), ("post", "account", 3));
    // One text in each line of standard input.
    let output = place.with_input(&["predict", &model, "-", "--format", "txt"], "refund my money\nparcel\n");
    let answers = lines(&stdout(&output));
    assert_eq!((answers[1][1].as_str(), answers[2][1].as_str()), ("pay", "post"));
    let output = place.with_input(&["predict", &model, "-"], "refund my money\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--format: txt"));
    // A table whose columns have other names, and an output whose format is that of its name.
    fs::write(&new, "id,body\n1,the courier is late\n").unwrap();
    place.refused(&["predict", &model, &new], &["new.csv", "--text"]);
    let out = place.at("answers.jsonl");
    place.say(&["predict", &model, &new, "--text", "body", "-o", &out]);
    assert!(fs::read_to_string(&out).unwrap().starts_with("{"));
    let shown = place.say(&["inspect", &model]);
    assert!(shown.contains("encoder   text-ngrams at text-ngrams, digest"), "{shown}");
}

#[test]
fn raw_inputs_are_learned_as_their_features_are() {
    let place = Place::new();
    let (model, table) = place.tickets();
    let (features, other) = (place.at("tickets.npz"), place.at("other.lrp"));
    place.say(&["embed", "text-ngrams", &table, "-o", &features]);
    place.say(&["init", &other, "--like", &features, "--width", "300"]);
    place.say(&["learn", &other, &features]);
    // The row is that of the table, or that of the array of test samples.
    let scores = |model: &str, file: &str| -> (Vec<String>, Vec<Vec<String>>) {
        let answers = place.say(&["predict", model, file, "--scores"]);
        lines(&answers).into_iter().map(|mut cells| (cells.remove(0), cells)).unzip()
    };
    let ((in_table, raw), (in_array, encoded)) = (scores(&model, &table), scores(&other, &features));
    assert_eq!(
        (raw, &in_table[1..4], &in_array[1..4]),
        (encoded, &["4", "9", "14"].map(String::from)[..], &["0", "1", "2"].map(String::from)[..])
    );
    place.refused(&["learn", &model, &features], &["learned before", "tickets.csv"]);
    // Without a cache, features are computed once and give the same model.
    let third = place.at("third.lrp");
    place.say(&["init", &third, "--encoder", "text-ngrams", "--width", "300"]);
    place.say(&["learn", &third, &table, "--no-cache"]);
    assert_eq!(scores(&third, &table), scores(&model, &table));
    // The exported classifier has the encoder, too.
    let exported = place.at("tickets.safetensors");
    place.say(&["export", &model, &exported]);
    let label =
        |model: &str| lines(&place.say(&["predict", model, &table])).iter().map(|l| l[1].clone()).collect::<Vec<_>>();
    assert_eq!(label(&exported), label(&model));
}

#[test]
fn images_become_labels_with_the_names_of_their_files() {
    let place = Place::new();
    let (photos, model) = (images(place.path()), place.at("colours.lrp"));
    place.say(&["init", &model, "--encoder", "image-basic", "--width", "200"]);
    let learned = json_of(&place, &["learn", &model, &photos.display().to_string(), "--json"]);
    assert_eq!((&learned["samples"], &learned["classes_in_all"]), (&8.into(), &2.into()), "the training split");
    let inbox = place.path().join("inbox");
    bitmap(&inbox.join("a.bmp"), [0, 0, 210], 2);
    bitmap(&inbox.join("b.bmp"), [0, 190, 0], 5);
    let inbox = inbox.display().to_string();
    let answers = lines(&place.say(&["predict", &model, &inbox]));
    assert_eq!(answers[0], ["row", "name", "label", "score"]);
    assert_eq!(
        (&answers[1][1..3], &answers[2][1..3]),
        (&["a.bmp".into(), "red".into()][..], &["b.bmp".into(), "green".into()][..])
    );
    let answers = place.say(&["predict", &model, &inbox, "--to", "jsonl"]);
    let answer: serde_json::Value = serde_json::from_str(answers.lines().next().unwrap()).unwrap();
    assert_eq!((&answer["name"], &answer["label"]), (&"a.bmp".into(), &"red".into()));
    // A single image, and one that cannot be read.
    let single = format!("{inbox}/a.bmp");
    assert_eq!(lines(&place.say(&["predict", &model, &single]))[1][2], "red");
    fs::write(&single, "no image").unwrap();
    place.refused(&["predict", &model, &inbox, "-o", &place.at("answers.csv")], &["a.bmp"]);
    assert!(!place.path().join("answers.csv").exists());
    let output = place.call(&["predict", &model, &inbox, "--skip-bad"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains(&single));
    assert_eq!(lines(&stdout(&output)).len(), 2);
}

#[test]
fn another_encoder_than_the_models_is_refused() {
    let place = Place::new();
    let (model, table) = place.tickets();
    let before = place.say(&["inspect", &model, "--json"]);
    let photos = images(place.path()).display().to_string();
    place.refused(&["learn", &model, &table, "--encoder", "image-basic"], &["another encoder", "text-ngrams"]);
    place.refused(&["predict", &model, &photos, "--encoder", "image-basic"], &["another encoder", "text-ngrams"]);
    place
        .refused(&["learn", &model, &table, "--encoder", "all-MiniLM-L6-v2"], &["another encoder", "all-MiniLM-L6-v2"]);
    let features = place.at("photos.npz");
    place.say(&["embed", "image-basic", &photos, "-o", &features]);
    for command in ["learn", "predict", "eval"] {
        place.refused(&[command, &model, &features], &["photos.npz", "2320 features"]);
    }
    // The file of features names its encoder, also in a model that was made for any features.
    let (own, named) = (place.at("own.npz"), place.at("named.lrp"));
    place.say(&["embed", "text-ngrams", &table, "-o", &own]);
    place.say(&["init", &named, "--dim", "2048", "--width", "200"]);
    place.say(&["learn", &named, &own]);
    let shown = json_of(&place, &["inspect", &named, "--json"]);
    assert_eq!(
        (&shown["encoder"], shown["encoder_reference"]["digest"].as_str().unwrap().len()),
        (&"text-ngrams".into(), 64)
    );
    assert_eq!(place.say(&["inspect", &model, "--json"]), before, "nothing has changed");
}

#[test]
fn a_model_without_an_encoder_refuses_raw_inputs_with_advice() {
    let place = Place::new();
    let (model, table) = (place.at("m.lrp"), texts(place.path(), 30));
    place.refused(&["init", &model, "--like", &table], &["tickets.csv", "--encoder text-ngrams"]);
    place.refused(&["init", &model, "--like", &table, "--encoder", "text-ngrams"], &["leave out --like"]);
    place.refused(&["init", &model], &["--encoder", "--dim", "--like"]);
    place.refused(&["init", &model, "--encoder", "some-name"], &["some-name", "text-ngrams", "--dim"]);
    place.refused(&["init", &model, "--encoder", "missing/folder"], &["missing/folder"]);
    place.refused(&["init", &model, "--encoder", "text-ngrams", "--dim", "7"], &["2048 features", "7"]);
    assert!(!Path::new(&model).exists());
    place.say(&["init", &model, "--dim", "2048", "--width", "100"]);
    for command in ["learn", "unlearn"] {
        place.refused(&[command, &model, &table], &["tickets.csv", "--encoder", "loranpac embed"]);
    }
    // A name alone is no encoder, and another one is refused.
    let named = place.at("named.lrp");
    place.say(&["init", &named, "--dim", "2048", "--encoder", "mine", "--width", "100"]);
    place.refused(&["learn", &named, &table], &["only the name", "mine"]);
    place.refused(&["learn", &named, &table, "--encoder", "text-ngrams"], &["another encoder", "mine"]);
    let other = place.at("other.lrp");
    place.say(&["init", &other, "--dim", "7", "--width", "100"]);
    place.refused(&["learn", &other, &table, "--encoder", "text-ngrams"], &["2048 features", "7"]);
    // One that is given is recorded.
    place.say(&["learn", &model, &table, "--encoder", "text-ngrams"]);
    place.say(&["eval", &model, &table]);
}

#[test]
fn an_encoder_is_found_again_by_its_digest() {
    let place = Place::new();
    let (photos, weights) = (images(place.path()).display().to_string(), place.path().join("vit"));
    vit(&weights, 1);
    let model = place.at("m.lrp");
    place.say(&[
        "init",
        &model,
        "--encoder",
        &weights.display().to_string(),
        "--width",
        "100",
        "--preprocess",
        "unit,resize=16,crop=16",
    ]);
    place.say(&["learn", &model, &photos]);
    let expected = place.say(&["predict", &model, &photos]);
    // Another place, under another name.
    let elsewhere = place.path().join("encoders");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(&weights, elsewhere.join("renamed")).unwrap();
    place.refused(&["predict", &model, &photos], &["vit", "digest", "LORANPAC_ENCODERS"]);
    vit(&elsewhere.join("another"), 2);
    let found = place.command(&["predict", &model, &photos]).env("LORANPAC_ENCODERS", &elsewhere).output().unwrap();
    assert_eq!(stdout(&found), expected);
    // Given by the user, with the preprocessing of the model.
    let given = elsewhere.join("renamed").display().to_string();
    assert_eq!(place.say(&["predict", &model, &photos, "--encoder", &given]), expected);
    // Other weights in the same place.
    vit(&weights, 2);
    place.refused(&["predict", &model, &photos], &["has the digest"]);
    place.refused(
        &["learn", &model, &photos, "--again", "--encoder", &weights.display().to_string()],
        &["another encoder"],
    );
    place.refused(
        &["learn", &model, &photos, "--again", "--encoder", &given, "--preprocess", "half,resize=16,crop=16"],
        &["another encoder"],
    );
}

#[test]
fn the_encoder_of_a_model_of_features_is_found_by_its_name_or_digest() {
    let place = Place::new();
    let (photos, elsewhere) = (images(place.path()).display().to_string(), place.path().join("encoders"));
    let weights = elsewhere.join("any-name");
    vit(&weights, 1);
    let (features, model) = (place.at("photos.npz"), place.at("m.lrp"));
    place.say(&["embed", &weights.display().to_string(), &photos, "-o", &features]);
    place.say(&["init", &model, "--like", &features, "--width", "50"]);
    place.say(&["learn", &model, &features]);
    place.refused(&["predict", &model, &photos], &["the encoder vit_test with the digest", "LORANPAC_ENCODERS"]);
    let found = place.command(&["predict", &model, &photos]).env("LORANPAC_ENCODERS", &elsewhere).output().unwrap();
    assert_eq!(lines(&stdout(&found)).len(), 5);
    // An encoder that is built in needs no folder.
    let (_, table) = place.tickets();
    place.say(&["embed", "text-ngrams", &table, "-o", &features]);
    let model = place.at("texts.lrp");
    place.say(&["init", &model, "--like", &features, "--width", "50"]);
    place.say(&["learn", &model, &table]);
}

#[test]
fn a_server_in_a_model_is_contacted_only_if_the_user_names_it() {
    let place = Place::new();
    let (model, table) = place.tickets();
    let folder = Path::new(&model);
    let manifest = fs::read_to_string(folder.join("MANIFEST")).unwrap();
    let (_, body) = manifest.split_once('\n').unwrap();
    let body =
        body.replacen("\"location\": \"text-ngrams\"", "\"location\": \"http://127.0.0.1:9/v1/embeddings?model=m\"", 1);
    let digest = sha2::Digest::finalize(sha2::Digest::chain_update(<sha2::Sha256 as sha2::Digest>::new(), &body));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(folder.join("MANIFEST"), format!("loranpac-model 2 {digest}\n{body}")).unwrap();
    place.refused(&["predict", &model, &table], &["http://127.0.0.1:9", "only if you give that address yourself"]);
}

#[test]
fn damaged_inputs_change_nothing() {
    let place = Place::new();
    let (model, _) = place.tickets();
    let before = place.say(&["inspect", &model, "--json"]);
    let bad = |name: &str, bytes: &[u8]| {
        let path = place.at(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let cases = [
        (bad("utf8.csv", b"text,label\nfine,a\n\xff\xfe,b\n"), "utf8.csv: line 3"),
        (bad("label.csv", b"text,label\nfine,a\nalso fine,\n"), "label.csv: line 3"),
        (bad("none.csv", b"text,label\n"), "none.csv"),
        (bad("split.jsonl", b"{\"text\": \"a\", \"label\": \"b\", \"split\": \"other\"}\n"), "split"),
        (bad("archive.zip", b"PK\x03\x04 no archive"), "archive.zip"),
    ];
    for (file, word) in cases {
        place.refused(&["learn", &model, &file], &[word]);
    }
    assert_eq!(place.say(&["inspect", &model, "--json"]), before);
}

#[test]
fn features_beside_texts_are_read_as_features() {
    let place = Place::new();
    let (model, _) = place.tickets();
    let row =
        |label: &str| serde_json::json!({ "text": "x", "label": label, "embedding": vec![0.1; 2048] }).to_string();
    let path = place.at("both.jsonl");
    fs::write(&path, format!("{}\n{}\n", row("pay"), row("post"))).unwrap();
    assert_eq!(lines(&place.say(&["predict", &model, &path])).len(), 3, "no text is encoded");
}
