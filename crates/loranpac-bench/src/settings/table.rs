//! The list of settings. Its order is the order in which values are read, crossed in recipes and shown in commands.

use loranpac::lift::{self, DEFAULT_GAMMA};
use loranpac::registry::Input;
use loranpac::{Config, Schedule, Truncation, Width};

use super::read::{TIMES, clear_unless, is_drawn, positive, reason, time, truncate, when};
use super::{Kind, Setting};
use crate::spec::{AdaptFeatures, OPEN, Order, Scenario, Spec, When};
use crate::value::Value;

const ADAPTATION: &str = "Adaptation";
const LIFT: &str = "Lift";
const METHOD: &str = "Method";
const PROTOCOL: &str = "Protocol";

const MODULES: &[&str] = &["none", "adapter", "lora", "vpt-deep", "vpt-shallow", "ssf"];
const ADAPTED: &[&str] = &["adapted", "both", "chosen"];
const FEATURES: [AdaptFeatures; 3] = [AdaptFeatures::Adapted, AdaptFeatures::Both, AdaptFeatures::Chosen];
const SCHEDULES: &[&str] = &["late", "paper"];
const SCENARIOS: &[&str] = &["class", "domain", "joint"];
const SWITCH: &[&str] = &["false", "true"];

/// Every setting of a run but the method and the settings of its own.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "lift",
        section: LIFT,
        placeholder: "NAME",
        help: "Feature map",
        kind: Kind::Lift,
        read: |spec, value| {
            let entry = lift::find(&value.to_string()).map_err(|_| {
                let known: Vec<&str> = lift::LIFTS.iter().map(|lift| lift.name).collect();
                format!("the lifts are {}", known.join(", "))
            })?;
            spec.lift = entry.name.to_owned();
            Ok(())
        },
        show: |spec| {
            let chosen = spec.method().is_ok_and(|method| method.input == Input::Lifted) && !spec.is_infinite();
            chosen.then(|| Value::Text(spec.lift.clone()))
        },
        settle: |spec, method| spec.lift = method.input.lift(&spec.lift).to_owned(),
        ..Setting::PLAIN
    },
    Setting {
        name: "width",
        section: LIFT,
        placeholder: "E",
        help: "Width of the lifted features; infinite: exact by their kernel, but samples are kept; or auto: three to five times the \
               training samples, from 10000 to 100000 and as far as memory allows",
        always: true,
        read: |spec, value| match value.to_string().as_str() {
            "auto" => {
                spec.width = OPEN;
                Ok(())
            }
            text => spec.widen(text.parse().map_err(|reason| format!("{reason}, or auto"))?),
        },
        show: |spec| match spec.width {
            Width::Infinite => Some(Value::from("infinite")),
            OPEN => spec.is_open().then(|| Value::from("auto")),
            Width::Finite(width) => Some(width.into()),
        },
        settle: |spec, method| {
            // Methods that compute lifted features refuse an infinite width when they are built.
            if !(is_drawn(spec) || spec.is_infinite() && method.input.lifted()) {
                spec.width = OPEN;
            }
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "keep-samples",
        section: LIFT,
        help: "Samples may be kept: an automatic width is then infinite, for methods that have one and up to 20000 samples",
        kind: Kind::Switch,
        read: |spec, value| {
            spec.keep_samples = value.word(SWITCH)? == 1;
            Ok(())
        },
        show: |spec| spec.keep_samples.then(|| Value::from(SWITCH[1])),
        settle: |spec, _| clear_unless(spec, Spec::is_open, |spec| spec.keep_samples = false),
        ..Setting::PLAIN
    },
    Setting {
        name: "lift-seed",
        python: Some("random_state"),
        section: LIFT,
        placeholder: "S",
        help: "Seed of the random projection",
        read: |spec, value| {
            spec.lift_seed = value.parse().ok_or("a whole number of at least 0 is expected")?;
            Ok(())
        },
        show: |spec| Some(spec.lift_seed.into()),
        settle: |spec, _| clear_unless(spec, is_drawn, |spec| spec.lift_seed = 0),
        ..Setting::PLAIN
    },
    Setting {
        name: "gamma",
        section: LIFT,
        placeholder: "G",
        help: "Inverse width of the kernel behind fourier features: exp(-G |x - z|^2) of unit vectors",
        read: |spec, value| {
            spec.gamma = value.number()?;
            Ok(())
        },
        show: |spec| Some(Value::Number(spec.gamma)),
        settle: |spec, _| clear_unless(spec, |spec| spec.lift == "fourier", |spec| spec.gamma = DEFAULT_GAMMA),
        ..Setting::PLAIN
    },
    Setting {
        name: "max-rank",
        section: METHOD,
        placeholder: "R",
        help: "Cut to R directions, the paper's r_max; up to 1.6 R are kept between cuts (fewer above 9000). Default 10000; at \
               infinite width, where it is samples that are kept, all of them",
        read: |spec, value| {
            spec.max_rank = Some(value.count(1)?);
            Ok(())
        },
        show: |spec| spec.max_rank.filter(|cap| *cap != Config::cap(spec.width)).map(Value::from),
        // Records of finite width have the number, also those of earlier versions.
        settle: |spec, _| {
            if spec.is_open() {
                return;
            }
            let cap = spec.cap();
            spec.max_rank = (!spec.is_infinite() || cap != Config::cap(spec.width)).then_some(cap);
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "schedule",
        section: METHOD,
        placeholder: "WHEN",
        help: "Cut the spectrum when the classifier is formed, or after every task as in the paper's Algorithm 4",
        kind: Kind::Words(SCHEDULES),
        read: |spec, value| {
            spec.schedule = [Schedule::Late, Schedule::Paper][value.word(SCHEDULES)?];
            Ok(())
        },
        show: |spec| Some(Value::from(SCHEDULES[usize::from(spec.schedule == Schedule::Paper)])),
        settle: |spec, method| {
            if !method.cuts {
                spec.schedule = Schedule::Late;
            }
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "truncate",
        section: METHOD,
        placeholder: "Z",
        help: "Cut this share of the directions, the paper's zeta, in [0, 1) [default: 0.25; soft: a ridge instead of a cut]",
        group: Some("truncation"),
        read: |spec, value| truncate(spec, Truncation::Fraction(value.number()?)),
        show: |spec| match spec.truncation {
            Some(Truncation::Fraction(zeta)) => Some(Value::Number(zeta)),
            _ => None,
        },
        settle: |spec, method| spec.truncation = spec.truncation.filter(|_| method.truncates),
        ..Setting::PLAIN
    },
    Setting {
        name: "threshold",
        section: METHOD,
        placeholder: "D",
        help: "Cut eigenvalues below this instead",
        group: Some("truncation"),
        read: |spec, value| truncate(spec, Truncation::Threshold(value.number()?)),
        show: |spec| match spec.truncation {
            Some(Truncation::Threshold(delta)) => Some(Value::Number(delta)),
            _ => None,
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "rank",
        section: METHOD,
        placeholder: "K",
        help: "Keep this many directions instead",
        group: Some("truncation"),
        read: |spec, value| truncate(spec, Truncation::Rank(value.count(1)?)),
        show: |spec| match spec.truncation {
            Some(Truncation::Rank(k)) => Some(k.into()),
            _ => None,
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "adapt",
        section: ADAPTATION,
        placeholder: "MODULE",
        help: "Train modules inside the encoder on the first task, before it is learned: raw data and a transformer are needed",
        kind: Kind::Words(MODULES),
        read: |spec, value| {
            let module = value.word(MODULES)?;
            spec.adapt = (module > 0).then(|| MODULES[module].to_owned());
            Ok(())
        },
        show: |spec| Some(Value::Text(spec.adapt.clone().unwrap_or_else(|| MODULES[0].to_owned()))),
        settle: |spec, method| match method.input {
            Input::Raw => spec.adapt = None,
            Input::Adapted | Input::Subspaces if spec.adapt.is_none() => spec.adapt = Some(MODULES[1].to_owned()),
            _ => {}
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "adapt-features",
        section: ADAPTATION,
        placeholder: "WHICH",
        help: "Learn from the adapted features, from those before and after adaptation side by side, or from the best of frozen, adapted and both \
               for classes of the first task that adaptation has not seen",
        kind: Kind::Words(ADAPTED),
        read: |spec, value| {
            spec.adapt_features = FEATURES[value.word(ADAPTED)?];
            Ok(())
        },
        show: |spec| Some(Value::from(ADAPTED[spec.adapt_features as usize])),
        settle: |spec, method| {
            if spec.adapt.is_none() || method.input.adapts() {
                spec.adapt_features = AdaptFeatures::Adapted;
            }
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "adapt-rate",
        section: ADAPTATION,
        placeholder: "R",
        help: "Rate of the first epoch of adaptation; it falls along a cosine to zero",
        read: |spec, value| {
            spec.adapt_rate = positive(value)?;
            Ok(())
        },
        show: |spec| Some(Value::Number(spec.adapt_rate)),
        settle: |spec, _| clear_unless(spec, |spec| spec.adapt.is_some(), |spec| spec.adapt_rate = 0.01),
        ..Setting::PLAIN
    },
    Setting {
        name: "adapt-epochs",
        section: ADAPTATION,
        placeholder: "N",
        help: "Epochs of adaptation",
        read: |spec, value| {
            spec.adapt_epochs = value.count(1)?;
            Ok(())
        },
        show: |spec| Some(spec.adapt_epochs.into()),
        settle: |spec, _| clear_unless(spec, |spec| spec.adapt.is_some(), |spec| spec.adapt_epochs = 20),
        ..Setting::PLAIN
    },
    Setting {
        name: "adapt-batch",
        section: ADAPTATION,
        placeholder: "N",
        help: "Samples per step of adaptation",
        read: |spec, value| {
            spec.adapt_batch = value.count(1)?;
            Ok(())
        },
        show: |spec| Some(spec.adapt_batch.into()),
        settle: |spec, _| clear_unless(spec, |spec| spec.adapt.is_some(), |spec| spec.adapt_batch = 48),
        ..Setting::PLAIN
    },
    Setting {
        name: "adapt-scale",
        section: ADAPTATION,
        placeholder: "S",
        help: "Scale of the cosine classifier with which modules are trained, before training; a larger one makes gradients larger",
        read: |spec, value| {
            spec.adapt_scale = positive(value)?;
            Ok(())
        },
        show: |spec| Some(Value::Number(spec.adapt_scale)),
        settle: |spec, _| clear_unless(spec, |spec| spec.adapt.is_some(), |spec| spec.adapt_scale = 1.0),
        ..Setting::PLAIN
    },
    Setting {
        name: "scenario",
        section: PROTOCOL,
        placeholder: "NAME",
        help: "How samples become tasks: new classes, new domains, or all at once",
        kind: Kind::Words(SCENARIOS),
        read: |spec, value| {
            match value.word(SCENARIOS)? {
                0 if matches!(spec.scenario, Scenario::Class { .. }) => {}
                0 => spec.scenario = Scenario::default(),
                1 => spec.scenario = Scenario::Domain,
                _ => spec.scenario = Scenario::Joint,
            }
            Ok(())
        },
        show: |spec| {
            Some(Value::from(match spec.scenario {
                Scenario::Class { .. } => SCENARIOS[0],
                Scenario::Domain => SCENARIOS[1],
                Scenario::Joint => SCENARIOS[2],
            }))
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "base",
        section: PROTOCOL,
        placeholder: "N",
        help: "Classes in the first task; 0 for as many as in the others (B-q1)",
        read: |spec, value| {
            let count = value.count(0)?;
            if let Scenario::Class { base, .. } = &mut spec.scenario {
                *base = count;
            }
            Ok(())
        },
        show: |spec| match spec.scenario {
            Scenario::Class { base, .. } => Some(base.into()),
            _ => None,
        },
        settle: |spec, _| {
            if let Scenario::Class { base, increment } = &mut spec.scenario
                && base == increment
            {
                *base = 0;
            }
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "inc",
        section: PROTOCOL,
        placeholder: "N",
        help: "Classes in each task (Inc-q2)",
        always: true,
        read: |spec, value| {
            let count = value.count(1)?;
            if let Scenario::Class { increment, .. } = &mut spec.scenario {
                *increment = count;
            }
            Ok(())
        },
        show: |spec| match spec.scenario {
            Scenario::Class { increment, .. } => Some(increment.into()),
            _ => None,
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "per-class",
        section: PROTOCOL,
        placeholder: "N",
        help: "Use the first N training samples of each class, in file order",
        read: |spec, value| {
            spec.per_class = Some(value.count(1)?);
            Ok(())
        },
        show: |spec| spec.per_class.map(Value::from),
        ..Setting::PLAIN
    },
    Setting {
        name: "long-tail",
        section: PROTOCOL,
        placeholder: "RATIO",
        help: "Make classes smaller along the class order: class i of C keeps the first N RATIO^(-i/(C-1)) training samples, at least \
               1, N those of the largest class",
        read: |spec, value| {
            let ratio = value.number()?;
            if ratio < 1.0 {
                return Err("a number of at least 1 is expected".to_owned());
            }
            spec.long_tail = Some(ratio);
            Ok(())
        },
        show: |spec| spec.long_tail.map(Value::Number),
        ..Setting::PLAIN
    },
    Setting {
        name: "prior",
        section: PROTOCOL,
        placeholder: "PRIOR",
        help: "How often classes are expected in queries: none (scores as they are), train (as in training), uniform (equally often), \
               or a number for each label, on the command line in a CSV or JSON file. Classifiers that are no least-squares \
               solutions do not change",
        kind: Kind::Prior,
        read: |spec, value| {
            spec.prior = value.to_string().parse().map_err(reason)?;
            Ok(())
        },
        show: |spec| Some(Value::Text(spec.prior.to_string())),
        ..Setting::PLAIN
    },
    Setting {
        name: "order",
        section: PROTOCOL,
        placeholder: "FILE",
        help: "Class order: sorted, or all labels separated by commas; on the command line also a file with one label per line",
        kind: Kind::Labels,
        group: Some("order"),
        read: |spec, value| {
            spec.order = Some(match value {
                Value::Text(word) if word == "sorted" => Order::Sorted,
                Value::Text(list) => Order::Labels(list.split(',').map(str::to_owned).collect()),
                Value::List(labels) => Order::Labels(labels.iter().map(Value::to_string).collect()),
                label => Order::Labels(vec![label.to_string()]),
            });
            Ok(())
        },
        show: |spec| match spec.order.as_ref()? {
            Order::Sorted => Some(Value::from("sorted")),
            Order::Labels(labels) => Some(Value::List(labels.iter().cloned().map(Value::Text).collect())),
        },
        settle: |spec, _| {
            if spec.order.is_some() {
                spec.seed = 0;
            }
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "eval",
        section: PROTOCOL,
        placeholder: "WHEN",
        help: "Form and evaluate the classifier after every task, or at the end",
        kind: Kind::Words(TIMES),
        read: |spec, value| when(&mut spec.eval, value),
        show: |spec| Some(time(spec.eval)),
        settle: |spec, method| {
            // A method that is not continual would start from scratch every time: it is a reference for the end.
            if !method.continual {
                spec.eval = When::Final;
            }
        },
        ..Setting::PLAIN
    },
    Setting {
        name: "train-loss",
        section: PROTOCOL,
        placeholder: "WHEN",
        help: "Measure the error on all training samples so far, which the learner itself no longer has",
        kind: Kind::Words(TIMES),
        read: |spec, value| when(&mut spec.train_loss, value),
        show: |spec| Some(time(spec.train_loss)),
        ..Setting::PLAIN
    },
    Setting {
        name: "spectrum",
        section: PROTOCOL,
        placeholder: "WHEN",
        help: "Record the eigenvalues of the feature Gram matrix, for methods that keep it",
        kind: Kind::Words(TIMES),
        read: |spec, value| when(&mut spec.spectrum, value),
        show: |spec| Some(time(spec.spectrum)),
        ..Setting::PLAIN
    },
    Setting {
        name: "seed",
        python: Some("seeds"),
        section: PROTOCOL,
        placeholder: "S",
        help: "Class order, as NumPy's legacy generator shuffles for this seed; several, separated by commas, for several runs",
        kind: Kind::Several,
        group: Some("order"),
        read: |spec, value| {
            spec.seed = value.parse().ok_or_else(|| format!("a whole number from 0 to {} is expected", u32::MAX))?;
            Ok(())
        },
        show: |spec| spec.order.is_none().then(|| Value::Integer(spec.seed.into())),
        ..Setting::PLAIN
    },
    #[cfg(test)]
    Setting {
        name: "dummy",
        section: METHOD,
        placeholder: "N",
        help: "Stands for a new setting in tests",
        read: |spec, value| {
            spec.settings.insert("chunk".to_owned(), value.count(1)?.to_string());
            Ok(())
        },
        show: |spec| spec.settings.get("chunk").cloned().map(Value::Text),
        ..Setting::PLAIN
    },
];
