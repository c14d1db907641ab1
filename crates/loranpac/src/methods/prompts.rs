//! Prompt methods: they train prompts for a frozen transformer on images or texts. The learners are in the crate of encoders
//! (`loranpac_encode::prompt`); here are their entries.

use crate::method::{Method, Promise};

/// What no prompt method promises.
const EXEMPT: &[(Promise, &str)] = &[
    (Promise::SampleOrder, "steps of gradient descent follow the order of the samples"),
    (Promise::Halves, "each task is trained for some epochs, so that two halves of a task are two trainings"),
    (Promise::Stability, "gradient descent on a non-convex loss depends on every rounding error"),
];

/// Entry of L2P (Wang et al., CVPR 2022).
pub(crate) const L2P: Method = Method::raw(
    "l2p",
    "prompt tokens from a pool, selected by keys; trains on images or texts",
    &[
        ("epochs", "epochs per task [default: 5]"),
        ("rate", "rate of Adam [default: 0.001875]"),
        ("batch", "samples per step [default: 16]"),
        ("pool", "number of prompts [default: 10]"),
        ("length", "tokens of a prompt [default: 5]"),
        ("top", "prompts that are selected for a sample [default: 5]"),
        ("pull", "factor of the similarity of queries and selected keys in the loss [default: 0.1]"),
        ("batchwise", "true: all samples of a batch get the prompts that most of them select [default: false]"),
        ("augment", "false: images are not cropped and mirrored at random [default: true]"),
    ],
    EXEMPT,
);

/// Entry of DualPrompt (Wang et al., ECCV 2022).
pub(crate) const DUALPROMPT: Method = Method::raw(
    "dualprompt",
    "prefixes of keys and values for all tasks, and for each task; trains on images or texts",
    &[
        ("epochs", "epochs per task [default: 5]"),
        ("rate", "rate of Adam [default: 0.001]"),
        ("batch", "samples per step [default: 24]"),
        ("length", "keys, and values, of a prompt [default: 5]"),
        ("pull", "factor of the similarity of queries and the task's key in the loss [default: 0.1]"),
        ("batchwise", "true: all test samples of a batch get the prompt that most of them select [default: false]"),
        ("augment", "false: images are not cropped and mirrored at random [default: true]"),
    ],
    EXEMPT,
);

/// Entry of CODA-Prompt (Smith et al., CVPR 2023).
pub(crate) const CODAPROMPT: Method = Method::raw(
    "codaprompt",
    "prefixes that are weighted sums of components, some for each task; trains on images or texts",
    &[
        ("epochs", "epochs per task [default: 20]"),
        ("rate", "rate of Adam in the first epoch; it falls along a cosine [default: 0.001]"),
        ("batch", "samples per step [default: 128]"),
        ("pool", "number of components, divided over the tasks [default: 100]"),
        ("length", "keys and values of a component together [default: 8]"),
        ("augment", "false: images are not cropped and mirrored at random [default: true]"),
    ],
    EXEMPT,
);
