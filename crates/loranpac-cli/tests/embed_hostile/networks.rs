//! ONNX files.

use crate::made::{average, bytes, constant, convolution, integer, integers, network, node, tensor, weights};
use crate::world::{World, seed};

fn world(network: &[u8]) -> World {
    let world = World::new();
    world.write("a.png", seed("image/png-rgb"));
    world.write("x.onnx", network);
    world
}

#[test]
fn networks_of_images_are_run() {
    for network in [average(&[-1, 3, 8, 8]), average(&[-1, 3, -1, -1]), average(&[4, 3, 8, 8])] {
        world(&network).accepted("x.onnx", "a.png", &[]);
    }
}

#[test]
fn networks_that_are_damaged_or_of_another_kind_are_refused() {
    let whole = convolution();
    let refused = |network: &[u8], words: &[&str]| {
        world(network).refused("x.onnx", "a.png", &[&["x.onnx"], words].concat());
    };
    refused(&[], &["cannot be loaded"]);
    refused(b"hello, this is no network", &["cannot be loaded"]);
    refused(&whole[..whole.len() / 2], &["truncated"]);
    refused(&whole[..whole.len() - 3], &["truncated"]);
    refused(&average(&[-1, 3]), &["(n, 3)", "(n, 3, height, width)"]);
    refused(&average(&[-1, 5, 8, 8]), &["(n, 5, 8, 8)"]);
    refused(&average(&[0, 3, 8, 8]), &["(0, 3, 8, 8)"]);
    refused(&average(&[1 << 40, 3, 8, 8]), &["(1099511627776, 3, 8, 8)"]);
    world(&average(&[1024, 3, 4096, 4096])).refused("x.onnx", "a.png", &["side of 4681"]);
    world(&average(&[-1, 3, 0, 8])).refused("x.onnx", "a.png", &["side of 0"]);
    world(&average(&[-1, 3, 1 << 40, 1 << 40])).refused("x.onnx", "a.png", &["side of"]);
    refused(&network(&[-1, 3, 8, 8], &[node("Magic", &["x"], "y", &[])]), &["Magic"]);
    refused(&network(&[-1, 3, 8, 8], &[node("Relu", &["nothing"], "y", &[])]), &["x.onnx"]);
    refused(&network(&[-1, 3, 8, 8], &[]), &["x.onnx"]);
    // A channel too many for the weights, and weights with fewer numbers than their shape.
    let conv = |shape: &[usize]| [weights(&tensor("w", shape)), node("Conv", &["x", "w"], "y", &[])];
    refused(&network(&[-1, 3, 8, 8], &conv(&[4, 5, 2, 2])), &["x.onnx"]);
    let mut short = tensor("w", &[4, 3, 2, 2]);
    short.shape = vec![4, 3, 200, 200];
    refused(&network(&[-1, 3, 8, 8], &[weights(&short), node("Conv", &["x", "w"], "y", &[])]), &["x.onnx"]);
    let tokens = [constant("s", &[0, 3, -1]), node("Reshape", &["x", "s"], "y", &[])];
    refused(&network(&[-1, 3, 8, 8], &tokens), &["[1, 3, 64]", "features (n, d)"]);
}

#[test]
fn claims_beyond_the_file_deep_nesting_and_loops_are_refused() {
    let raw = [vec![9 << 3 | 2], vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x20]].concat();
    let refused = |parts: &[Vec<u8>], words: &[&str]| {
        let network = network(&[-1, 3, 8, 8], parts);
        world(&network).refused("x.onnx", "a.png", &[&["x.onnx"], words].concat());
    };
    refused(&[bytes(5, &raw)], &["truncated"]);
    let graph = |inner: &[u8]| bytes(1, &[bytes(4, b"If"), bytes(5, &bytes(6, inner))].concat());
    let nested = (0..50_000).fold(Vec::new(), |inner, _| graph(&inner));
    refused(&[nested], &["nested too deeply"]);
    refused(&[node("Loop", &["x"], "y", &[])], &["Loop"]);
    // Negative and huge shapes.
    let shape = |sides: &[i64]| [constant("s", sides), node("ConstantOfShape", &["s"], "y", &[])];
    refused(&shape(&[-1, 5]), &["x.onnx"]);
    refused(&shape(&[i64::MAX, i64::MAX]), &["x.onnx"]);
    let pool = |attribute: Vec<u8>| [node("MaxPool", &["x"], "y", &[attribute])];
    refused(&pool(integers("kernel_shape", &[0, 0])), &["x.onnx"]);
    refused(&pool(integers("kernel_shape", &[i64::MAX, -5])), &["x.onnx"]);
    let axis = [bytes(1, b"axis"), integer(3, 1 << 40), integer(20, 2)].concat();
    refused(&[node("Softmax", &["x"], "y", &[axis])], &["x.onnx"]);
}
