//! What to run a product with: opens a table that `analyze dispatch` wrote, for the device that this process has, and looks
//! up one product after the other. Usage: lookup dispatch.json M…

use scout_dispatch::{Choice, Device, Entry, Op, Table};
use std::{env, fs, process::ExitCode};

/// A serving engine asks CUDA, NVML and the libraries themselves. Here it stands in the environment, so that the example runs
/// anywhere.
fn told(name: &str, otherwise: &str) -> String {
    env::var(name).unwrap_or_else(|_| otherwise.to_string())
}

/// What an engine does with an entry: the default where it says so, else what was proven.
fn entry(e: &Entry) -> String {
    if e.choice == Choice::Default {
        let (name, us) = (&e.implementation, e.default_us);
        return format!("{} as it is by default, {:.2} us: nothing was proven to be faster", name, us);
    }
    let packing = e.packing.as_ref().map_or(String::new(), |how| format!("; its weight is {}", how));
    format!(
        "{} {}, {:.2} us instead of {:.2}; {} bytes for cublasLtMatmulAlgoCheck{}",
        e.implementation,
        e.variant,
        e.expected_us,
        e.default_us,
        e.algo.len(),
        packing
    )
}

fn look_up(path: &str, rows: &[i64]) -> Result<(), String> {
    let (name, capability) = (told("DEVICE", "NVIDIA H200"), told("CAPABILITY", "9.0"));
    let (driver, cublaslt, cudnn) = (told("DRIVER", "580.159.04"), told("CUBLASLT", "13.1.0"), told("CUDNN", "9.19.0"));
    let device = Device {
        name: &name,
        capability: &capability,
        driver: &driver,
        libraries: &[("cublaslt", &cublaslt), ("cudnn", &cudnn)],
        ..Device::default()
    };
    let bytes = fs::read(path).map_err(|e| format!("{}: {}", path, e))?;
    let (table, warning) = Table::open(&bytes, &device).map_err(|e| format!("{}: {}", path, e))?;
    if let Some(text) = warning {
        eprintln!("lookup: {}: {}", path, text);
    }
    // Once: the operation as this layer has it. Only the number of rows changes from call to call.
    let op = Op {
        kind: "gemm",
        shape: &[0, 4096, 4096],
        layout: Some("nn"),
        dtype: Some("fp16"),
        weight_dtype: Some("fp16"),
        weight_side: Some("b"),
        ..Op::default()
    };
    let mut key = op.key().ok_or("no such key")?;
    let place = key.place("shape", 0).ok_or("no shape")?;
    for &m in rows {
        key.numbers_mut()[place] = m;
        match (table.find(&key), table.near(&key)) {
            (Some(e), _) => println!("{:5} rows: {}", m, entry(e)),
            (None, Some((lower, upper))) => println!(
                "{:5} rows: not measured, but between two that agree on {}: {:.2} to {:.2} us",
                m, lower.implementation, lower.expected_us, upper.expected_us
            ),
            (None, None) => println!("{:5} rows: not measured: the default", m),
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let rows: Result<Vec<i64>, _> = arguments.iter().skip(1).map(|m| m.parse()).collect();
    match (arguments.first(), rows) {
        (Some(path), Ok(rows)) => match look_up(path, &rows) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("lookup: {}", why);
                ExitCode::from(3) // an engine goes on with the defaults
            }
        },
        _ => {
            eprintln!("usage: lookup dispatch.json M...");
            ExitCode::from(2)
        }
    }
}
