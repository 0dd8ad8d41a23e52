//! A layer by what the table proves: for each number of rows what runs, and how long a call takes. Usage: layer
//! dispatch.json K N M…
use scout_run::{Options, Runner, SmartMatmul, Stream, View, ViewMut};
use std::{env, error::Error, process::ExitCode, time::Instant};

fn show(path: &str, sizes: &[usize]) -> Result<(), Box<dyn Error>> {
    let (k, n) = (sizes[0], sizes[1]);
    let say: scout_run::Say = Box::new(|line| eprintln!("layer: {line}"));
    let runner = Runner::open(Options { table: Some(path.as_ref()), say: Some(say), ..Options::default() })?;
    let weight: Vec<f32> = (0..k * n).map(|at| (at % 7) as f32 - 3.0).collect();
    let layer = SmartMatmul::new(&runner, View::of(&weight, &[k, n])?)?;
    for &m in &sizes[2..] {
        let (a, mut c) = (vec![1f32; m * k], vec![0f32; m * n]);
        let (from, mut to) = (View::of(&a, &[m, k])?, ViewMut::of(&mut c, &[m, n])?);
        let choice = runner.choice(&format!("gemm;shape={m},{n},{k};layout=nn;type=fp32;weight=fp32;weight_side=b"))?;
        let mut best = f64::INFINITY; // the first one makes the plan
        for _ in 0..20 {
            let begun = Instant::now();
            layer.run(from, &mut to, Stream::NONE)?;
            best = best.min(begun.elapsed().as_secs_f64() * 1e6);
        }
        let how = if choice.listed { "the table's" } else { "the default" };
        println!("{m:5} rows: {how}, {} {}, {best:.1} us", choice.implementation, choice.variant);
    }
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let sizes: Vec<usize> = words.iter().skip(1).map_while(|word| word.parse().ok()).filter(|&n| n > 0).collect();
    if words.len() < 4 || sizes.len() + 1 != words.len() {
        eprintln!("usage: layer dispatch.json K N M...");
        return ExitCode::from(2);
    }
    match show(&words[0], &sizes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("layer: {why}");
            ExitCode::FAILURE
        }
    }
}
