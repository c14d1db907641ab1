//! Every rival against numbers from NumPy, SciPy and scikit-learn: `golden/rivals.json`, printed by
//! `bench/reference/rivals.py`, which computes each from its definition in f64.

use std::sync::Arc;

use faer::{Mat, MatRef};
use loranpac::internals::Scalar;
use loranpac::lift::{self, FeatureMap, Identity, LiftSpec};
use loranpac::methods::{IncrementalSvd, Lda, Ogd, RanPac, Rls, lda::Shrinkage, ogd, validation_errors};
use loranpac::registry::{self, MethodOptions};
use loranpac::{Features, Label, Learner, Truncation};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/rivals.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Mat<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(numbers).collect();
    Mat::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
}

fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as usize).collect()
}

/// The tasks of a data set: samples in rows, and labels.
fn tasks(golden: &Value, name: &str) -> Vec<(Vec<f32>, usize, Vec<Label>)> {
    let read = |task: &Value| {
        let rows: Vec<Vec<f64>> = task["x"].as_array().unwrap().iter().map(numbers).collect();
        let labels = task["y"].as_array().unwrap().iter().map(|y| Label::from(y.as_i64().unwrap())).collect();
        (rows.concat().iter().map(|&v| v as f32).collect(), rows[0].len(), labels)
    };
    golden[name]["tasks"].as_array().unwrap().iter().map(read).collect()
}

fn identity(golden: &Value, name: &str) -> Arc<dyn FeatureMap> {
    Arc::new(Identity::new(tasks(golden, name)[0].1))
}

fn learn_all(model: &mut dyn Learner, golden: &Value, name: &str) {
    for (x, dim, labels) in tasks(golden, name) {
        model.learn(Features::new(&x, dim).unwrap(), &labels).unwrap();
    }
    let expected = golden[name]["labels"].as_array().unwrap();
    let expected: Vec<Label> = expected.iter().map(|y| Label::from(y.as_i64().unwrap())).collect();
    assert_eq!(model.classes().labels(), expected);
}

/// `|a - b| / |b|` is below the tolerance.
#[track_caller]
fn assert_close(found: MatRef<'_, f64>, expected: &Mat<f64>, tolerance: f64, what: &str) {
    assert_eq!((found.nrows(), found.ncols()), (expected.nrows(), expected.ncols()), "{what}");
    let error = (found - expected).norm_l2() / expected.norm_l2();
    assert!(error < tolerance, "{what}: off by {error:e}");
}

fn wide<T: Scalar>(a: MatRef<'_, T>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)].to_f64())
}

/// Scores of the unit vectors, which are the weights of a linear model without constants, c x d.
fn weights_by_scores(model: &mut dyn Learner, dim: usize) -> Mat<f64> {
    let units: Vec<f32> = (0..dim * dim).map(|i| if i / dim == i % dim { 1.0 } else { 0.0 }).collect();
    let scores = model.classifier().unwrap().scores(Features::new(&units, dim).unwrap()).unwrap();
    Mat::from_fn(scores.row(0).len(), dim, |class, i| scores.row(i)[class] as f64)
}

#[test]
fn ranpac_and_layup_with_a_fixed_ridge_are_scipy_s_ridge_regression() {
    let golden = golden();
    for case in golden["expected"]["ridge"].as_array().unwrap() {
        let (name, lambda) = (case["data"].as_str().unwrap(), case["lambda"].as_f64().unwrap());
        let mut model = RanPac::new(identity(&golden, name), Some(lambda), 0);
        learn_all(&mut model, &golden, name);
        let w = model.weights().unwrap();
        assert_close(w.as_ref(), &matrix(&case["weights"]), 1e-6, &format!("{name}, lambda {lambda}"));
        // LayUp is the same learner on the identity; its layers are put together by the data set.
        let settings = vec![("ridge".to_owned(), lambda.to_string())];
        let options = MethodOptions { settings, ..MethodOptions::new(identity(&golden, name)) };
        let mut layup = registry::find("layup").unwrap().build(&options).unwrap();
        learn_all(&mut *layup, &golden, name);
        let w = weights_by_scores(&mut *layup, w.ncols());
        assert_close(w.as_ref(), &matrix(&case["weights"]), 1e-6, &format!("layup, {name}, lambda {lambda}"));
    }
}

#[test]
fn rls_on_well_conditioned_data_is_batch_ridge_regression() {
    let golden = golden();
    for case in golden["expected"]["ridge"].as_array().unwrap() {
        let (name, lambda) = (case["data"].as_str().unwrap(), case["lambda"].as_f64().unwrap());
        let expected = matrix(&case["weights"]);
        let mut exact = Rls::<f64>::new(identity(&golden, name), Some(lambda), 0).unwrap();
        learn_all(&mut exact, &golden, name);
        let what = format!("{name}, lambda {lambda}");
        assert_close(wide(exact.weights().transpose()).as_ref(), &expected, 1e-6, &what);
        assert!(exact.summary().drift.unwrap() < 1e-9, "{what}: {:?}", exact.summary().drift);
        let mut coarse = Rls::<f32>::new(identity(&golden, name), Some(lambda), 0).unwrap();
        learn_all(&mut coarse, &golden, name);
        let drift = coarse.summary().drift.unwrap();
        assert!(drift > 0.0 && drift.is_finite(), "single precision drifts, and says so: {drift:e}");
        if lambda >= 1.0 {
            assert_close(wide(coarse.weights().transpose()).as_ref(), &expected, 1e-3, &what);
        }
    }
}

#[test]
fn the_choice_of_lambda_sees_scipy_s_validation_errors() {
    let golden = golden();
    for case in golden["expected"]["holdout"].as_array().unwrap() {
        let name = case["data"].as_str().unwrap();
        let used = &tasks(&golden, name)[..case["tasks"].as_u64().unwrap() as usize];
        let x: Vec<f32> = used.iter().flat_map(|(x, _, _)| x.clone()).collect();
        let labels: Vec<Label> = used.iter().flat_map(|(_, _, y)| y.clone()).collect();
        let mut table = loranpac::LabelTable::default();
        let classes: Vec<usize> = labels.iter().map(|label| table.get_or_insert(label)).collect();
        let h = Features::new(&x, used[0].1).unwrap().as_matrix();
        let (fit, validate) = (indices(&case["fit"]), indices(&case["validate"]));
        let errors = validation_errors(h, &classes, &fit, &validate, &numbers(&case["lambdas"]));
        for (found, expected) in errors.iter().zip(numbers(&case["mse"])) {
            assert!((found - expected).abs() < 1e-6 * expected, "{name}: {found} {expected}");
        }
    }
}

#[test]
fn ridge_truncated_is_numpy_s_truncated_ridge() {
    let golden = golden();
    for case in golden["expected"]["ridge_truncated"].as_array().unwrap() {
        let (name, zeta) = (case["data"].as_str().unwrap(), case["zeta"].as_f64().unwrap());
        let settings = vec![("ridge".to_owned(), case["lambda"].to_string())];
        let lift = identity(&golden, name);
        let truncation = Some(Truncation::Fraction(zeta));
        let options = MethodOptions { settings, truncation, ..MethodOptions::new(lift.clone()) };
        let mut model = registry::find("ridge-truncated").unwrap().build(&options).unwrap();
        learn_all(&mut *model, &golden, name);
        let expected = matrix(&case["weights"]);
        // The basis is f32, and so is what comes out of it.
        assert_close(weights_by_scores(&mut *model, lift.dim()).as_ref(), &expected, 1e-5, name);
    }
}

#[test]
fn the_variants_of_min_norm_are_scipy_s_pseudo_inverse_on_well_conditioned_data() {
    let golden = golden();
    let case = &golden["expected"]["min_norm"];
    let (name, expected) = (case["data"].as_str().unwrap(), matrix(&case["weights"]));
    let lift = identity(&golden, name);
    let mut engine = registry::find("min-norm").unwrap().build(&MethodOptions::new(lift.clone())).unwrap();
    let mut drifting = IncrementalSvd::new(lift.clone(), false, 10_000);
    let mut joint = IncrementalSvd::new(lift.clone(), true, 10_000);
    let models: [(&str, &mut dyn Learner); 3] =
        [("min-norm", &mut *engine), ("min-norm-drifting", &mut drifting), ("min-norm-joint", &mut joint)];
    for (what, model) in models {
        learn_all(model, &golden, name);
        // The literal variants live in f32 and square the condition number; the engine's Gram matrix is f64.
        let tolerance = if what == "min-norm" { 1e-4 } else { 2e-3 };
        assert_close(weights_by_scores(model, lift.dim()).as_ref(), &expected, tolerance, what);
    }
}

#[test]
fn orthogonal_gradient_descent_takes_the_steps_that_numpy_takes() {
    let golden = golden();
    for (what, case) in [("ogd", &golden["expected"]["ogd"]), ("pca-ogd", &golden["expected"]["pca_ogd"])] {
        let name = case["data"].as_str().unwrap();
        let steps = case["steps"].as_u64().unwrap() as usize;
        let variant = match case["zeta"].as_f64() {
            None => ogd::Variant::Ogd(steps),
            Some(zeta) => ogd::Variant::Pca(steps, Truncation::Fraction(zeta)),
        };
        let mut model = Ogd::new(identity(&golden, name), variant).unwrap();
        for ((x, dim, labels), after) in tasks(&golden, name).iter().zip(case["after"].as_array().unwrap()) {
            model.learn(Features::new(x, *dim).unwrap(), labels).unwrap();
            let w = wide(model.weights().transpose());
            assert_close(w.as_ref(), &matrix(after), 1e-5, &format!("{what} with {} classes", w.nrows()));
        }
    }
}

#[test]
fn or_fit_takes_the_steps_that_numpy_takes_and_ends_at_the_minimum_norm() {
    let golden = golden();
    let case = &golden["expected"]["or_fit"];
    let name = case["data"].as_str().unwrap();
    let mut model = Ogd::new(identity(&golden, name), ogd::Variant::OrFit(10_000)).unwrap();
    learn_all(&mut model, &golden, name);
    let w = wide(model.weights().transpose());
    assert_close(w.as_ref(), &matrix(&case["weights"]), 1e-5, "literal");
    assert_close(w.as_ref(), &matrix(&golden["expected"]["min_norm"]["weights"]), 1e-5, "minimum norm");
}

#[test]
fn or_fit_truncates_its_basis_and_still_fits_the_latest_sample() {
    let golden = golden();
    let mut model = Ogd::new(identity(&golden, "wide"), ogd::Variant::OrFit(5)).unwrap();
    for (x, dim, labels) in tasks(&golden, "wide") {
        model.learn(Features::new(&x, dim).unwrap(), &labels).unwrap();
        assert!(model.summary().basis_rank.unwrap() <= 5);
        let last = model.classifier().unwrap().predict(Features::new(&x[x.len() - dim..], dim).unwrap()).unwrap();
        assert_eq!(last.first(), labels.last());
    }
}

#[test]
fn slda_is_scikit_learn_s_linear_discriminant_analysis() {
    let golden = golden();
    for case in golden["expected"]["lda"].as_array().unwrap() {
        let (name, shrinkage) = (case["data"].as_str().unwrap(), case["shrinkage"].as_f64().unwrap());
        let mut model = Lda::new(identity(&golden, name), Shrinkage::Fixed(shrinkage)).unwrap();
        learn_all(&mut model, &golden, name);
        let (w, bias) = model.weights().unwrap();
        assert_close(w.as_ref(), &matrix(&case["coef"]), 1e-6, "weights");
        for (found, expected) in bias.iter().zip(numbers(&case["intercept"])) {
            assert!((found - expected).abs() < 1e-6 * expected.abs(), "{found} {expected}");
        }
    }
    for name in ["wide", "tall"] {
        let mut model = Lda::new(identity(&golden, name), Shrinkage::Oracle).unwrap();
        learn_all(&mut model, &golden, name);
        let expected = golden["expected"]["oas"][name].as_f64().unwrap();
        assert!((model.shrinkage() - expected).abs() < 1e-9, "{name}: {} {expected}", model.shrinkage());
    }
}

/// The test samples of a data set, one row after the other.
fn test_samples(golden: &Value, name: &str) -> Vec<f32> {
    let rows = golden[name]["test"].as_array().unwrap();
    rows.iter().flat_map(numbers).map(|v| v as f32).collect()
}

/// Scores as a matrix, one row per sample.
fn scores(model: &mut dyn Learner, x: &[f32], dim: usize) -> Mat<f64> {
    let scores = model.classifier().unwrap().scores(Features::new(x, dim).unwrap()).unwrap();
    Mat::from_fn(x.len() / dim, scores.row(0).len(), |i, j| scores.row(i)[j] as f64)
}

#[test]
fn simplecil_is_numpy_s_cosine_with_class_means() {
    let golden = golden();
    let case = &golden["expected"]["class_means"];
    let name = case["data"].as_str().unwrap();
    let lift = identity(&golden, name);
    let mut model = registry::find("simplecil").unwrap().build(&MethodOptions::new(lift.clone())).unwrap();
    learn_all(&mut *model, &golden, name);
    let found = scores(&mut *model, &test_samples(&golden, name), lift.dim());
    assert_close(found.as_ref(), &matrix(&case["scores"]), 1e-6, "cosines");
}

#[test]
fn randumb_is_scikit_learn_s_analysis_of_fourier_features() {
    let golden = golden();
    let case = &golden["expected"]["fourier"];
    let name = case["data"].as_str().unwrap();
    let (dim, x) = (tasks(&golden, name)[0].1, test_samples(&golden, name));
    let spec = LiftSpec {
        seed: case["seed"].as_u64().unwrap(),
        gamma: case["gamma"].as_f64().unwrap(),
        ..LiftSpec::new(dim, case["width"].as_u64().unwrap() as usize)
    };
    let lift = lift::build("fourier", spec).unwrap();
    let mut h = Mat::<f32>::zeros(lift.width(), x.len() / dim);
    lift.lift(Features::new(&x, dim).unwrap().as_matrix(), h.as_mut());
    assert_close(wide(h.transpose()).as_ref(), &matrix(&case["features"]), 1e-6, "features");

    let case = &golden["expected"]["randumb"];
    let settings = vec![("shrinkage".to_owned(), case["shrinkage"].to_string())];
    let options = MethodOptions { settings, ..MethodOptions::new(lift) };
    let mut model = registry::find("randumb").unwrap().build(&options).unwrap();
    learn_all(&mut *model, &golden, name);
    assert_close(scores(&mut *model, &x, dim).as_ref(), &matrix(&case["scores"]), 1e-4, "scores");
}

/// Builds a method of the list with settings, and learns a data set.
fn learned(
    method: &str,
    map: Arc<dyn FeatureMap>,
    settings: &[(&str, String)],
    seed: u64,
    name: &str,
) -> Box<dyn Learner> {
    let settings = settings.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
    let options = MethodOptions { settings, seed, ..MethodOptions::new(map) };
    let mut model = registry::find(method).unwrap().build(&options).unwrap();
    learn_all(&mut *model, &golden(), name);
    model
}

/// A setting of a method, as a case has it.
fn setting<'a>(case: &Value, name: &'a str) -> (&'a str, String) {
    (name, case[name].to_string())
}

/// The lift of a case with this seed.
fn lift_of(case: &Value, lift: &str, seed: &str, dim: usize) -> Arc<dyn FeatureMap> {
    let mut spec = LiftSpec::new(dim, case["width"].as_u64().unwrap() as usize);
    spec.seed = case[seed].as_u64().unwrap();
    spec.gamma = case["gamma"].as_f64().unwrap_or(spec.gamma);
    lift::build(lift, spec).unwrap()
}

/// The scores of a model on the test samples of a case are those of the case.
#[track_caller]
fn assert_scores(model: &mut dyn Learner, golden: &Value, case: &Value, tolerance: f64, what: &str) {
    let name = case["data"].as_str().unwrap();
    let found = scores(model, &test_samples(golden, name), tasks(golden, name)[0].1);
    assert_close(found.as_ref(), &matrix(&case["scores"]), tolerance, &format!("{what}, {name}"));
}

#[test]
fn air_is_numpy_s_class_weighted_ridge_regression_from_either_side() {
    let golden = golden();
    for case in golden["expected"]["air"].as_array().unwrap() {
        let name = case["data"].as_str().unwrap();
        let settings = if case["fixed"] == true { vec![setting(case, "ridge")] } else { Vec::new() };
        let map = identity(&golden, name);
        let mut model = learned("air", map.clone(), &settings, 0, name);
        let weights = weights_by_scores(&mut *model, map.dim());
        assert_close(weights.as_ref(), &matrix(&case["weights"]), 1e-5, name);
        let (found, expected) = (model.summary().ridge.unwrap(), case["ridge"].as_f64().unwrap());
        assert!((found - expected).abs() < 1e-5 * expected, "{name}: {found} {expected}");
    }
}

#[test]
fn acil_and_gacl_are_recursive_least_squares() {
    let golden = golden();
    let case = &golden["expected"]["acil"];
    let name = case["data"].as_str().unwrap();
    let mut rls = Rls::<f64>::new(identity(&golden, name), case["lambda"].as_f64(), 0).unwrap();
    learn_all(&mut rls, &golden, name);
    assert_close(wide(rls.weights().transpose()).as_ref(), &matrix(&case["weights"]), 1e-9, name);
}

#[test]
fn fecam_is_numpy_s_mahalanobis_distance_in_the_correlations_of_each_class() {
    let golden = golden();
    for case in golden["expected"]["fecam"].as_array().unwrap() {
        let name = case["data"].as_str().unwrap();
        let settings = ["tukey", "shrink", "mix"].map(|key| setting(case, key));
        let mut model = learned("fecam", identity(&golden, name), &settings, 0, name);
        assert_scores(&mut *model, &golden, case, 1e-4, &format!("{settings:?}"));
    }
}

#[test]
fn knn_is_the_vote_of_scikit_learn_s_nearest_neighbours() {
    let golden = golden();
    for case in golden["expected"]["knn"].as_array().unwrap() {
        let name = case["data"].as_str().unwrap();
        let vote = match case["temperature"].as_f64() {
            Some(_) => setting(case, "temperature"),
            None => ("vote", "majority".to_owned()),
        };
        let mut model = learned("knn", identity(&golden, name), &[setting(case, "neighbours"), vote], 0, name);
        assert_scores(&mut *model, &golden, case, 1e-5, "votes");
    }
}

#[test]
fn klda_is_the_mean_posterior_of_scikit_learn_s_analyses_of_fourier_features() {
    let golden = golden();
    let case = &golden["expected"]["klda"];
    let name = case["data"].as_str().unwrap();
    let map = lift_of(case, "fourier", "seed", tasks(&golden, name)[0].1);
    let settings = [("ensemble", case["members"].to_string()), setting(case, "shrinkage")];
    let mut model = learned("klda", map, &settings, 0, name);
    assert_scores(&mut *model, &golden, case, 1e-4, "posteriors");
}

#[test]
fn klda_with_one_member_is_randumb() {
    let golden = golden();
    let map = lift_of(&golden["expected"]["klda"], "fourier", "seed", tasks(&golden, "tall")[0].1);
    let mut one = learned("klda", map.clone(), &[("ensemble", "1".to_owned())], 0, "tall");
    let mut other = learned("randumb", map.clone(), &[], 0, "tall");
    let x = test_samples(&golden, "tall");
    assert_eq!(scores(&mut *one, &x, map.dim()), scores(&mut *other, &x, map.dim()));
}

#[test]
fn fly_cl_chooses_numpy_s_lambda_at_every_task_and_predicts_as_its_ridge_regression() {
    let golden = golden();
    for case in golden["expected"]["fly_cl"].as_array().unwrap() {
        let name = case["data"].as_str().unwrap();
        let dim = tasks(&golden, name)[0].1;
        let share = |key: &str, whole: usize| (case[key].as_f64().unwrap() / whole as f64).to_string();
        let coding = share("kept", case["width"].as_u64().unwrap() as usize);
        let settings = vec![("degree".to_owned(), share("degree", dim)), ("coding".to_owned(), coding)];
        let options = MethodOptions { settings, ..MethodOptions::new(lift_of(case, "random", "seed", dim)) };
        let mut model = registry::find("fly-cl").unwrap().build(&options).unwrap();
        for ((x, dim, labels), ridge) in tasks(&golden, name).iter().zip(numbers(&case["ridges"])) {
            model.learn(Features::new(x, *dim).unwrap(), labels).unwrap();
            assert_eq!(model.summary().ridge, Some(ridge), "{name}");
        }
        assert_scores(&mut *model, &golden, case, 1e-4, "scores");
    }
}

#[test]
fn anacp_is_numpy_s_projection_towards_separated_means_and_regression_on_replayed_samples() {
    let golden = golden();
    let case = &golden["expected"]["anacp"];
    let name = case["data"].as_str().unwrap();
    let map = lift_of(case, "random", "lift_seed", tasks(&golden, name)[0].1);
    let settings = ["heads", "replay", "spread", "ridge"].map(|key| setting(case, key));
    let mut model = learned("anacp", map, &settings, case["seed"].as_u64().unwrap(), name);
    assert_scores(&mut *model, &golden, case, 1e-4, "scores");
}
