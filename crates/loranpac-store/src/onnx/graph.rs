//! ONNX operators for a lift and W.
//!
//! ```text
//! relu-random:  x -> Gemm(projection') -> Relu -> Gemm(weights') -> scores -> ArgMax -> label_index
//! ```
//!
//! Products are `Gemm` with `transB = 1` rather than `MatMul`: P and W' are then stored row by row as the engine has them
//! (`E x d` and `c x E`), so that P is written in strips as it is generated and W without a transposed copy. In
//! onnxruntime 1.31 the difference is within the noise: 197 against 188 ms at best and 274 against 259 at the median for
//! 256 samples, 247 against 241 and 311 against 311 in a second series (E = 20,000, d = 384, c = 150, in turns, on two
//! threads of a busy machine).

use loranpac::lift::{Activation, Operation};

use crate::error::Error;
use crate::inference::Inference;
use crate::precision::{Encoding, Precision};

use super::proto::Message;

/// ONNX's numbers for types of elements.
const FLOAT: i64 = 1;
const INT64: i64 = 7;
const FLOAT16: i64 = 10;

/// Samples shorter than this are not normalised, as in the engine.
const NEGLIGIBLE: f32 = 1e-30;

/// Nodes and small constants; P and W are [`super::tensor::Tensor`]s.
#[derive(Default)]
pub(super) struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    outputs: Vec<Message>,
}

enum Attribute<'a> {
    Int(i64),
    Float(f32),
    Ints(&'a [i64]),
}
use Attribute::{Float, Int, Ints};

/// Builds the graph of a model whose weights are stored in `encoding`.
pub(super) fn build(model: &Inference, encoding: Encoding, probabilities: bool) -> Result<Graph, Error> {
    let mut graph = Graph::default();
    let space = model.classifier.space();
    let map = space.map().ok_or(Error::InfiniteWidth)?;
    let operations = map.operations();
    if encoding.precision == Precision::F16 {
        graph.widen("weights");
        if operations.iter().any(|operation| matches!(operation, Operation::Project { .. })) {
            graph.widen("projection");
        }
    }
    // The scale of the lifted features, which the product with W applies.
    let mut amplitude = 1.0;
    let mut h = "x";
    for operation in operations {
        h = match operation {
            Operation::Unit => graph.unit(h),
            Operation::Project { scale } => graph.project(h, scale),
            Operation::Activate(Activation::Linear) => h,
            Operation::Activate(Activation::Relu) => graph.node("Relu", &[h], "activated", &[]),
            Operation::Absolute => graph.node("Abs", &[h], "activated", &[]),
            Operation::Activate(Activation::Sigmoid) => graph.node("Sigmoid", &[h], "activated", &[]),
            Operation::CosinesAndSines => graph.cosines_and_sines(h, map.width()),
            Operation::PrependSample => graph.node("Concat", &["x", h], "lifted", &[("axis", Int(1))]),
            Operation::Scale(factor) => {
                amplitude *= factor;
                h
            }
            operation => return Err(Error::OnnxOperation { operation, lift: space.to_string() }),
        };
    }
    let product = [("transB", Int(1)), ("alpha", Float(amplitude * encoding.unit()))];
    graph.node("Gemm", &[h, "weights"], "scores", &product);
    graph.node("ArgMax", &["scores"], "label_index", &[("axis", Int(1)), ("keepdims", Int(0))]);
    let classes = model.labels().len();
    graph.outputs.push(value("scores", FLOAT, Some(classes)));
    graph.outputs.push(value("label_index", INT64, None));
    if probabilities {
        graph.softmax(model.classifier.temperature(), classes)?;
    }
    Ok(graph)
}

impl Graph {
    /// Returns the `GraphProto`, without its large initialisers.
    pub fn message(self, dim: usize) -> Message {
        let graph = Message::default().repeat(1, self.nodes).bytes(2, "loranpac").repeat(5, self.constants);
        graph.bytes(11, value("x", FLOAT, Some(dim))).repeat(12, self.outputs)
    }

    /// Appends `P x` times `scale`.
    fn project(&mut self, x: &str, scale: f32) -> &'static str {
        self.node("Gemm", &[x, "projection"], "projected", &[("transB", Int(1)), ("alpha", Float(scale))])
    }

    /// Appends `x / |x|`, and zero for zero. The largest feature is divided out first: its square could overflow f32.
    fn unit(&mut self, x: &str) -> &'static str {
        let rows = [("axes", Ints(&[1])), ("keepdims", Int(1))];
        self.constant("negligible", FLOAT, &[], NEGLIGIBLE.to_le_bytes());
        self.constant("one", FLOAT, &[], 1.0f32.to_le_bytes());
        self.node("Abs", &[x], "sizes", &[]);
        self.node("ReduceMax", &["sizes"], "largest", &rows);
        self.node("Max", &["largest", "negligible"], "divisor", &[]);
        self.node("Div", &[x, "divisor"], "scaled", &[]);
        self.node("ReduceL2", &["scaled"], "length", &rows);
        // The largest feature is now 1, so that only negligible samples are shorter than 1.
        self.node("Max", &["length", "one"], "scaled_length", &[]);
        self.node("Div", &["scaled", "scaled_length"], "unit", &[])
    }

    /// Appends `cos z_0, sin z_0, cos z_1, ...`, without the last sine if E is odd. The product with W multiplies by
    /// `sqrt(2 / E)`.
    fn cosines_and_sines(&mut self, z: &str, width: usize) -> &'static str {
        let whole = width.next_multiple_of(2) as i64;
        self.constant("last_axis", INT64, &[1], 2i64.to_le_bytes());
        // A 0 preserves the number of samples.
        self.constant("flat", INT64, &[2], [0, whole].map(i64::to_le_bytes).concat());
        self.node("Unsqueeze", &[z, "last_axis"], "angles", &[]);
        self.node("Cos", &["angles"], "cosines", &[]);
        self.node("Sin", &["angles"], "sines", &[]);
        self.node("Concat", &["cosines", "sines"], "pairs", &[("axis", Int(2))]);
        let flat = self.node("Reshape", &["pairs", "flat"], "interleaved", &[]);
        if width.is_multiple_of(2) {
            return flat;
        }
        self.constant("zero", INT64, &[1], 0i64.to_le_bytes());
        self.constant("width", INT64, &[1], (width as i64).to_le_bytes());
        self.constant("feature_axis", INT64, &[1], 1i64.to_le_bytes());
        self.node("Slice", &[flat, "zero", "width", "feature_axis"], "lifted", &[])
    }

    /// Appends `softmax(scores / T)`.
    fn softmax(&mut self, temperature: Option<f64>, classes: usize) -> Result<(), Error> {
        let temperature = temperature.ok_or(Error::NoTemperature)?;
        let single = temperature as f32;
        if !single.is_normal() {
            return Err(Error::TemperatureRange { temperature });
        }
        self.constant("temperature", FLOAT, &[], single.to_le_bytes());
        self.node("Div", &["scores", "temperature"], "logits", &[]);
        self.node("Softmax", &["logits"], "probabilities", &[("axis", Int(1))]);
        self.outputs.push(value("probabilities", FLOAT, Some(classes)));
        Ok(())
    }

    /// Converts an initialiser in half precision, `NAME_f16`, to single precision. Runtimes do so once, when they load.
    fn widen(&mut self, name: &'static str) {
        self.node("Cast", &[&half_name(name)], name, &[("to", Int(FLOAT))]);
    }

    /// Appends a `NodeProto`; it is named after its output.
    fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        output: &'static str,
        attributes: &[(&str, Attribute<'_>)],
    ) -> &'static str {
        let attributes = attributes.iter().map(|(name, value)| {
            let attribute = Message::default().bytes(1, name);
            match value {
                Float(number) => attribute.float(2, *number).int(20, 1),
                Int(number) => attribute.int(3, *number).int(20, 2),
                Ints(numbers) => numbers.iter().fold(attribute, |message, n| message.int(8, *n)).int(20, 7),
            }
        });
        let node = Message::default().repeat(1, inputs).bytes(2, output).bytes(3, output).bytes(4, operator);
        self.nodes.push(node.repeat(5, attributes));
        output
    }

    /// Appends a small `TensorProto`.
    fn constant(&mut self, name: &str, kind: i64, dims: &[i64], raw: impl AsRef<[u8]>) {
        let tensor = dims.iter().fold(Message::default(), |message, dim| message.int(1, *dim));
        self.constants.push(tensor.int(2, kind).bytes(8, name).bytes(9, raw));
    }
}

/// Returns the name of an initialiser in half precision.
pub(super) fn half_name(name: &str) -> String {
    format!("{name}_f16")
}

/// Returns ONNX's number for the type of a large initialiser.
pub(super) fn element_type(precision: Precision) -> i64 {
    match precision {
        Precision::F32 => FLOAT,
        Precision::F16 => FLOAT16,
    }
}

/// Creates a `ValueInfoProto` of shape (batch) or (batch, columns).
fn value(name: &str, kind: i64, columns: Option<usize>) -> Message {
    let batch = Message::default().bytes(2, "batch");
    let columns = columns.map(|n| Message::default().int(1, n as i64));
    let shape = Message::default().repeat(1, std::iter::once(batch).chain(columns));
    let tensor = Message::default().int(1, kind).bytes(2, shape);
    Message::default().bytes(1, name).bytes(2, Message::default().bytes(1, tensor))
}
