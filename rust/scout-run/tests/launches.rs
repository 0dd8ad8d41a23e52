//! On this machine's CPU: right results, refusals before anything is written, threads, and what the table says.
//! tests/rust/run.sh sets SCOUT_RUN_TABLE and SCOUT_RUN_LAYOUT.
use scout_run::{
    Attention, Bf16, Conv, Counts, Error, Gemm, Norm, Options, Runner, Side, SmartMatmul, Stream, Type, View, ViewMut,
};
use std::{
    env,
    sync::{Arc, Mutex},
    thread,
};

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|k| ((k * 7 + k / 5) % 11) as f32 - 5.0).collect()
}

fn product(a: &[f32], b: &[f32], m: usize, n: usize, k: usize) -> Vec<f32> {
    (0..m * n).map(|at| (0..k).map(|j| a[at / n * k + j] * b[j * n + at % n]).sum()).collect()
}

fn near(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() <= 1e-3 * w.abs().max(1.0), "{g}, not {w}");
    }
}

fn cpu() -> Runner {
    Runner::open(Options::default()).unwrap()
}

#[test]
fn structures_are_those_of_the_header() {
    assert_eq!(scout_run::ffi::layout(), env::var("SCOUT_RUN_LAYOUT").unwrap() + "\n");
}

#[test]
fn a_product_with_all_that_may_stand_behind_it() {
    let (m, n, k) = (5, 6, 7);
    let (a, b, bias, residual) = (numbers(m * k), numbers(k * n), numbers(n), numbers(m * n));
    let mut want = product(&a, &b, m, n, k);
    let runner = cpu();
    assert!(!runner.device().is_empty() && !runner.has_table() && runner.alignment() >= 1);
    let mut c = vec![f32::NAN; m * n];
    let (va, vb) = (View::of(&a, &[m, k]).unwrap(), View::of(&b, &[k, n]).unwrap());
    runner.gemm(va, vb, &mut ViewMut::of(&mut c, &[m, n]).unwrap(), &Gemm::default(), Stream::NONE).unwrap();
    near(&c, &want);
    let with = Gemm {
        weight: Some(Side::B),
        activation: Some(std::ffi::CStr::from_bytes_with_nul(b"relu\0").unwrap()),
        bias: Some(View::of(&bias, &[n]).unwrap()),
        residual: Some(View::of(&residual, &[m, n]).unwrap()),
        ..Gemm::default()
    };
    for (at, w) in want.iter_mut().enumerate() {
        *w = (*w + bias[at % n] + residual[at]).max(0.0);
    }
    // The weight with its columns side by side, as bytes; b is its transpose.
    let turned: Vec<f32> = (0..n * k).map(|at| b[at % k * n + at / k]).collect();
    // SAFETY: any floats are bytes.
    let bytes = unsafe { std::slice::from_raw_parts(turned.as_ptr().cast::<u8>(), 4 * n * k) };
    let vb = View::of_bytes(bytes, Type::Fp32, &[n, k]).unwrap().transposed();
    c.fill(f32::NAN);
    runner.gemm(va, vb, &mut ViewMut::of(&mut c, &[m, n]).unwrap(), &with, Stream::NONE).unwrap();
    near(&c, &want);
    assert_eq!(runner.counts(), Counts { unlisted: 2, ..Counts::default() });
}

#[test]
fn other_kinds() {
    let runner = cpu();
    let x = numbers(12);
    let mut y = vec![f32::NAN; 12];
    let vx = View::of(&x, &[3, 4]).unwrap();
    runner.softmax(vx, &mut ViewMut::of(&mut y, &[3, 4]).unwrap(), -1, false, Stream::NONE).unwrap();
    for row in 0..3 {
        let sum: f32 = x[4 * row..4 * row + 4].iter().map(|v| v.exp()).sum();
        near(&y[4 * row..4 * row + 4], &x[4 * row..4 * row + 4].iter().map(|v| v.exp() / sum).collect::<Vec<_>>());
    }
    runner.norm("rms", vx, &mut ViewMut::of(&mut y, &[3, 4]).unwrap(), &Norm::default(), Stream::NONE).unwrap();
    for row in 0..3 {
        let of = &x[4 * row..4 * row + 4];
        let by = (of.iter().map(|v| v * v).sum::<f32>() / 4.0 + 1e-5).sqrt();
        near(&y[4 * row..4 * row + 4], &of.iter().map(|v| v / by).collect::<Vec<_>>());
    }
    let two = [2f32];
    let inputs = [vx, View::of(&two, &[1]).unwrap()];
    runner.elementwise("mul", &inputs, &mut ViewMut::of(&mut y, &[3, 4]).unwrap(), Stream::NONE).unwrap();
    near(&y, &x.iter().map(|v| 2.0 * v).collect::<Vec<_>>());
    // One head, two keys that are the same: the mean of their values.
    let (q, v) = (numbers(4), [1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let k: Vec<f32> = q.iter().chain(&q).copied().collect();
    let mut out = vec![f32::NAN; 4];
    let dims = [1, 1, 2, 4];
    let (vk, vv) = (View::of(&k, &dims).unwrap(), View::of(&v, &dims).unwrap());
    let mut to = ViewMut::of(&mut out, &[1, 1, 1, 4]).unwrap();
    runner
        .attention(View::of(&q, &[1, 1, 1, 4]).unwrap(), vk, vv, &mut to, &Attention::default(), Stream::NONE)
        .unwrap();
    near(&out, &[3.0, 4.0, 5.0, 6.0]);
    let with = Attention { causal: true, past: Some(0), ..Attention::default() };
    let mut to = ViewMut::of(&mut out, &[1, 1, 1, 4]).unwrap();
    runner.attention(View::of(&q, &[1, 1, 1, 4]).unwrap(), vk, vv, &mut to, &with, Stream::NONE).unwrap();
    near(&out, &[1.0, 2.0, 3.0, 4.0]);
    // Places that are none: one before the first key is no key, one behind the last is the last.
    for last in [[-1_000_000], [-5], [i32::MAX], [1]] {
        let lengths = View::of(&last, &[1]).unwrap();
        let mut to = ViewMut::of(&mut out, &[1, 1, 1, 4]).unwrap();
        let with = Attention { lengths: Some(lengths), ..Attention::default() };
        runner.attention(View::of(&q, &[1, 1, 1, 4]).unwrap(), vk, vv, &mut to, &with, Stream::NONE).unwrap();
        if last[0] > 0 {
            near(&out, &[3.0, 4.0, 5.0, 6.0]);
        }
    }
    // 1x1, so a product of channels.
    let (image, weight) = (numbers(2 * 4 * 3), numbers(5 * 2));
    let mut mixed = vec![f32::NAN; 5 * 12];
    let (vi, vw) = (View::of(&image, &[1, 2, 4, 3]).unwrap(), View::of(&weight, &[5, 2, 1, 1]).unwrap());
    let mut to = ViewMut::of(&mut mixed, &[1, 5, 4, 3]).unwrap();
    runner.conv(vi, vw, &mut to, &Conv { constant: true, ..Conv::default() }, Stream::NONE).unwrap();
    near(&mixed, &product(&weight, &image, 5, 12, 2));
}

#[test]
fn what_does_not_fit_is_refused() {
    let invalid = |what: Result<(), Error>, text: &str| match what {
        Err(Error::Invalid(why)) => assert!(why.contains(text), "{why}"),
        other => panic!("{other:?}, not {text}"),
    };
    let (mut few, dims) = (vec![0f32; 12], [3usize, 4]);
    invalid(View::of(&few, &[3, 5]).map(drop), "does not fit into 12 elements");
    invalid(View::of(&few, &[usize::MAX, usize::MAX]).map(drop), "does not fit");
    invalid(View::of(&few, &[3, 0]).map(drop), "at least 1");
    invalid(View::of(&few, &[1; 9]).map(drop), "at most 8 dimensions");
    invalid(View::strided(&few, &dims, &[5, 1]).map(drop), "does not fit");
    invalid(View::strided(&few, &dims, &[1]).map(drop), "as many strides");
    invalid(View::of_bytes(&[0; 3], Type::Int4, &[7]).map(drop), "does not fit into 6 elements");
    invalid(ViewMut::strided(&mut few, &dims, &[2, 1]).map(drop), "writes one place twice");
    invalid(ViewMut::strided(&mut few, &[3], &[0]).map(drop), "writes one place twice");
    assert!(ViewMut::strided(&mut few, &dims, &[1, 3]).is_ok());
    let (runner, halves) = (cpu(), vec![Bf16(0); 12]);
    let (a, b) = (View::of(&halves, &dims).unwrap(), View::of(&few, &[4, 3]).unwrap());
    let mut c = vec![7f32; 9];
    let result = runner.gemm(a, b, &mut ViewMut::of(&mut c, &[3, 3]).unwrap(), &Gemm::default(), Stream::NONE);
    assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
    let result = runner.gemm(b, b, &mut ViewMut::of(&mut c, &[3, 3]).unwrap(), &Gemm::default(), Stream::NONE);
    assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
    assert_eq!(c, [7f32; 9]);
    // SAFETY: it is refused before it is looked at.
    let away = unsafe { View::device(few.as_ptr().cast(), Type::Fp32, &[4, 3], &[3, 1]) }.unwrap();
    let result = runner.gemm(
        View::of(&few, &dims).unwrap(),
        away,
        &mut ViewMut::of(&mut c, &[3, 3]).unwrap(),
        &Gemm::default(),
        Stream::NONE,
    );
    invalid(result, "memory of the host was expected");
    assert!(matches!(Runner::open(Options { device: "cuda:99", ..Options::default() }), Err(Error::NoDevice(_))));
    invalid(Runner::open(Options { device: "c\0", ..Options::default() }).map(drop), "without a zero byte");
    assert!(matches!(runner.choice("nonsense"), Err(Error::Invalid(_))));
}

#[test]
fn the_table_is_followed() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = said.clone();
    let table = env::var_os("SCOUT_RUN_TABLE").unwrap();
    let runner = Runner::open(Options {
        table: Some(table.as_ref()),
        say: Some(Box::new(move |line| heard.lock().unwrap().push(line.to_string()))),
        ..Options::default()
    })
    .unwrap();
    assert_eq!((runner.has_table(), runner.table_note()), (true, String::new()));
    let (m, n, k) = (64, 256, 512);
    let key = "gemm;shape=64,256,512;layout=nt;type=fp32;weight=fp32;weight_side=b";
    let choice = runner.choice(key).unwrap();
    assert_eq!((choice.listed, choice.packs), (true, true), "{choice:?}");
    assert_eq!((&choice.implementation[..], &choice.variant[..]), ("onednn", "weight=packed"));
    assert_eq!((choice.expected_us, choice.default_us), (Some(1.0), Some(2.0)));
    let (a, w) = (numbers(m * k), numbers(n * k));
    let b: Vec<f32> = (0..k * n).map(|at| w[at % n * k + at / n]).collect();
    let want = product(&a, &b, m, n, k);
    let layer = SmartMatmul::new(&runner, View::of(&w, &[n, k]).unwrap().transposed()).unwrap();
    thread::scope(|all| {
        for _ in 0..8 {
            all.spawn(|| {
                for rows in [m, 3, m] {
                    let mut c = vec![f32::NAN; rows * n];
                    layer
                        .run(
                            View::of(&a, &[rows, k]).unwrap(),
                            &mut ViewMut::of(&mut c, &[rows, n]).unwrap(),
                            Stream::NONE,
                        )
                        .unwrap();
                    near(&c, &want[..rows * n]);
                }
            });
        }
    });
    let packed: Vec<_> = layer.packings().into_iter().filter(|(rows, _)| *rows == m).collect();
    assert!(packed.len() == 1 && packed[0].1 >= (n * k * 4) as u64, "{packed:?}");
    let counts = runner.counts();
    assert_eq!((counts.listed, counts.unlisted, counts.unpacked), (16, 8, 0), "{counts:?}");
    assert_eq!(said.lock().unwrap().len(), 1, "{said:?}"); // of the three rows, once
                                                           // As columns it is another operation, whichever comes first.
    let turned: Vec<f32> = (0..k * m).map(|at| a[at % m * k + at / m]).collect();
    let columns = View::strided(&turned, &[m, k], &[1, m]).unwrap();
    for first in [true, false] {
        let layer = SmartMatmul::new(&runner, View::of(&w, &[n, k]).unwrap().transposed()).unwrap();
        for turn in [first, !first] {
            let mut c = vec![f32::NAN; m * n];
            let from = if turn { columns } else { View::of(&a, &[m, k]).unwrap() };
            layer.run(from, &mut ViewMut::of(&mut c, &[m, n]).unwrap(), Stream::NONE).unwrap();
            near(&c, &want);
        }
        assert!(layer.packings().iter().any(|(rows, _)| *rows == m));
    }
    assert_eq!((runner.counts().listed, runner.counts().unpacked), (18, 0), "{:?}", runner.counts());
    let signed =
        Runner::open(Options { table: Some(table.as_ref()), signers: Some("none"), ..Options::default() }).unwrap();
    assert!(!signed.has_table() && signed.table_note().contains("line 1 of the signers"), "{}", signed.table_note());
}

#[test]
fn packed_copies_are_bounded() {
    let table = env::var_os("SCOUT_RUN_TABLE").unwrap();
    let runner = Runner::open(Options { table: Some(table.as_ref()), ..Options::default() }).unwrap();
    let (n, k, w) = (256, 512, numbers(256 * 512));
    let layer = SmartMatmul::new(&runner, View::of(&w, &[n, k]).unwrap().transposed()).unwrap();
    let b: Vec<f32> = (0..k * n).map(|at| w[at % n * k + at / n]).collect();
    for _ in 0..2 {
        for m in 65..83 {
            let (a, mut c) = (numbers(m * k), vec![f32::NAN; m * n]);
            layer
                .run(View::of(&a, &[m, k]).unwrap(), &mut ViewMut::of(&mut c, &[m, n]).unwrap(), Stream::NONE)
                .unwrap();
            near(&c[..n], &product(&a[..k], &b, 1, n, k));
        }
    }
    let packed = layer.packings();
    assert!(packed.len() == 16 && packed[0].0 == 65 && packed[15].0 == 80, "{packed:?}");
    let counts = runner.counts();
    assert_eq!((counts.listed, counts.unpacked, counts.unlisted), (32, 4, 0), "{counts:?}");
}

#[test]
fn a_listener_that_panics_stops_nothing() {
    let say: scout_run::Say = Box::new(|_| panic!("heard"));
    let runner =
        Runner::open(Options { table: Some("nowhere".as_ref()), say: Some(say), ..Options::default() }).unwrap();
    assert!(!runner.has_table());
}

#[test]
fn bias_and_activation_of_a_layer() {
    let runner = cpu();
    let (a, w, bias) = (numbers(2 * 3), numbers(3 * 4), numbers(4));
    let layer = SmartMatmul::new(&runner, View::of(&w, &[3, 4]).unwrap()).unwrap();
    let layer = layer.bias(View::of(&bias, &[4]).unwrap()).activation("relu").unwrap();
    let mut c = vec![f32::NAN; 8];
    layer.run(View::of(&a, &[2, 3]).unwrap(), &mut ViewMut::of(&mut c, &[2, 4]).unwrap(), Stream::NONE).unwrap();
    let want: Vec<f32> =
        product(&a, &w, 2, 4, 3).iter().enumerate().map(|(at, x)| (x + bias[at % 4]).max(0.0)).collect();
    near(&c, &want);
    assert!(SmartMatmul::new(&runner, View::of(&w, &[12]).unwrap()).is_err());
}
