//! A product with a constant weight, by the policy of the table: for each number of rows what is proven for just these.
use crate::{Error, Gemm, Packed, Runner, Side, Stream, View, ViewMut};
use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    sync::{Arc, RwLock},
};

/// What a weight is packed for: types, sizes and strides of a and c.
type Form = [[i64; 5]; 2];

/// How many packed copies of a weight are kept.
const MOST: usize = 16;

fn form_of(a: &View<'_>, c: &ViewMut<'_>) -> Form {
    [&a.tensor, &c.tensor].map(|t| [t.kind.into(), t.dims[0], t.dims[1], t.strides[0], t.strides[1]])
}

/// c = activation(a w + bias), where w stays. Threads share one.
///
/// With each number of rows that comes for the first time the weight is packed for what runs that, where it packs at all:
/// for sixteen of them at most, as each is a copy of the weight. Later calls look the packed one up and launch. Further
/// numbers of rows run what takes the weight as it is ([`crate::Counts::unpacked`] where the table would pack it).
pub struct SmartMatmul<'a> {
    runner: &'a Runner,
    weight: View<'a>,
    scales: Option<View<'a>>,
    zeros: Option<View<'a>>,
    bias: Option<View<'a>>,
    activation: Option<CString>,
    packed: RwLock<HashMap<Form, Option<Arc<Packed<'a>>>>>,
}

impl<'a> SmartMatmul<'a> {
    /// By a weight of `[K,N]`, in any order: one that lies as `[N,K]` is `View::of(…, &[n, k])?.transposed()`.
    pub fn new(runner: &'a Runner, weight: View<'a>) -> Result<Self, Error> {
        if weight.dims().len() != 2 {
            return Err(Error::Invalid(format!("a weight of [K,N] was expected, not of {:?}", weight.dims())));
        }
        let packed = RwLock::new(HashMap::new());
        Ok(SmartMatmul { runner, weight, scales: None, zeros: None, bias: None, activation: None, packed })
    }

    /// Of a weight of 4 or 8 bits beside floats: `[N, blocks along K]`.
    pub fn scales(mut self, scales: View<'a>) -> Self {
        self.scales = Some(scales);
        self
    }

    /// As scales, of the weight's type: what is taken off its numbers.
    pub fn zeros(mut self, zeros: View<'a>) -> Self {
        self.zeros = Some(zeros);
        self
    }

    /// `[N]`, or what else a product takes.
    pub fn bias(mut self, bias: View<'a>) -> Self {
        self.bias = Some(bias);
        self
    }

    /// "relu", "gelu", "gelu_tanh", "silu", …
    pub fn activation(mut self, name: &str) -> Result<Self, Error> {
        self.activation = Some(crate::c_text("the activation", name)?);
        Ok(self)
    }

    fn with(&self) -> Gemm<'_> {
        Gemm {
            weight: Some(Side::B),
            activation: self.activation.as_deref() as Option<&CStr>,
            bias: self.bias,
            scales: self.scales,
            zeros: self.zeros,
            ..Gemm::default()
        }
    }

    /// The weight as it was packed for such rows. None: what runs them takes it as it is.
    fn packed(&self, a: View<'_>, c: &mut ViewMut<'_>) -> Result<Option<Arc<Packed<'a>>>, Error> {
        let form = form_of(&a, c);
        let known = |all: &HashMap<Form, Option<Arc<Packed<'a>>>>| all.get(&form).cloned();
        if let Some(found) = known(&self.packed.read().unwrap_or_else(|poisoned| poisoned.into_inner())) {
            return Ok(found);
        }
        let mut all = self.packed.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(found) = known(&all) {
            return Ok(found); // another thread was here before
        }
        let room = all.values().flatten().count() < MOST;
        let made = if room { self.runner.pack(a, self.weight, c, &self.with())?.map(Arc::new) } else { None };
        all.insert(form, made.clone());
        Ok(made)
    }

    /// a of `[M,K]` into c of `[M,N]`.
    pub fn run(&self, a: View<'_>, c: &mut ViewMut<'_>, on: Stream) -> Result<(), Error> {
        if a.tensor.rank != 2 || c.tensor.rank != 2 {
            let text = format!("rows of [M,K] and of [M,N] were expected, not {:?} and {:?}", a.dims(), c.dims());
            return Err(Error::Invalid(text));
        }
        let packed = self.packed(a, c)?;
        self.runner.gemm(a, self.weight, c, &Gemm { packed: packed.as_deref(), ..self.with() }, on)
    }

    /// For which numbers of rows the weight was packed, and what that takes, in bytes.
    pub fn packings(&self) -> Vec<(usize, u64)> {
        let all = self.packed.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut found: Vec<_> =
            all.iter().filter_map(|(form, p)| Some((form[0][1] as usize, p.as_ref()?.bytes()))).collect();
        found.sort_unstable();
        found
    }
}
