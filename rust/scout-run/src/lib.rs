#![deny(unsafe_op_in_unsafe_fn, missing_docs)]
//! Launches what a dispatch table of Ceiling Scout names, by libscout_run, on memory that is borrowed.
//!
//! ```no_run
//! use scout_run::{Options, Runner, SmartMatmul, Stream, View, ViewMut};
//! # fn main() -> Result<(), scout_run::Error> {
//! let runner = Runner::open(Options { table: Some("dispatch.json".as_ref()), ..Options::default() })?;
//! let weight = vec![0.5f32; 4096 * 1024];
//! let layer = SmartMatmul::new(&runner, View::of(&weight, &[4096, 1024])?)?;
//! let (a, mut c) = (vec![1f32; 16 * 4096], vec![0f32; 16 * 1024]);
//! layer.run(View::of(&a, &[16, 4096])?, &mut ViewMut::of(&mut c, &[16, 1024])?, Stream::NONE)?;
//! # Ok(()) }
//! ```
//!
//! What the table does not have, or cannot be run here, runs the library's default: it is counted ([`Runner::counts`]) and
//! said once ([`Options::say`]). Threads share a runner.

#[doc(hidden)]
pub mod ffi;
mod smart;
mod view;

pub use smart::SmartMatmul;
pub use view::{Bf16, Element, Type, View, ViewMut, F16};

use std::{
    ffi::{CStr, CString},
    fmt,
    marker::PhantomData,
    os::{raw::c_char, raw::c_void, unix::ffi::OsStrExt},
    panic,
    path::Path,
    ptr,
    time::Duration,
};

/// Why something was not done. Its text is one line that says what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An argument does not fit. Nothing was written.
    Invalid(String),
    /// Nothing on this device computes the operation.
    Unsupported(String),
    /// The device is not there, or cannot be used.
    NoDevice(String),
    /// Of the host or of the device.
    NoMemory(String),
    /// This launch failed; the device is fine.
    Failed(String),
    /// The device cannot be used from this process any more.
    Lost(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(t)
            | Error::Unsupported(t)
            | Error::NoDevice(t)
            | Error::NoMemory(t)
            | Error::Failed(t)
            | Error::Lost(t) => f.write_str(t),
        }
    }
}
impl std::error::Error for Error {}

fn new_error() -> ffi::Error {
    ffi::Error { status: 0, text: [0; 508] }
}

/// Borrowed texts of the library.
///
/// # Safety
/// NULL, or a text with its end.
unsafe fn text_at(at: *const c_char) -> String {
    if at.is_null() {
        return String::new();
    }
    // SAFETY: the caller's.
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

fn checked(status: i32, error: &ffi::Error) -> Result<(), Error> {
    // SAFETY: the library ends it.
    let text = unsafe { text_at(error.text.as_ptr()) };
    match status {
        ffi::OK => Ok(()),
        ffi::INVALID => Err(Error::Invalid(text)),
        ffi::UNSUPPORTED => Err(Error::Unsupported(text)),
        ffi::NO_DEVICE => Err(Error::NoDevice(text)),
        ffi::NO_MEMORY => Err(Error::NoMemory(text)),
        ffi::FAILED => Err(Error::Failed(text)),
        _ => Err(Error::Lost(text)),
    }
}

fn c_text(what: &str, text: impl Into<Vec<u8>>) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::Invalid(format!("{what}: a text without a zero byte was expected")))
}

fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(ptr::null(), |t| t.as_ptr())
}

/// A stream of CUDA.
#[derive(Clone, Copy, Debug)]
pub struct Stream(*mut c_void);

impl Stream {
    /// On a CPU, where a launch returns when all is computed; on CUDA the default stream.
    pub const NONE: Stream = Stream(ptr::null_mut());

    /// A cudaStream_t.
    ///
    /// # Safety
    /// It is a stream of the runner's device, which is current, and is there until its last launch is done.
    pub unsafe fn cuda(stream: *mut c_void) -> Stream {
        Stream(stream)
    }
}

/// Hears one line about what runs otherwise than the table says, from the thread whose call found it. It may not call the
/// runner that it hears of: that waits for it.
pub type Say = Box<dyn Fn(&str) + Send + Sync>;

/// How to open a runner. What is not said is as usual.
#[derive(Default)]
pub struct Options<'a> {
    /// A dispatch.json. None: all operations run their defaults.
    pub table: Option<&'a Path>,
    /// Only a table that one of these has signed is used: public keys as in id_ed25519.pub, one a line.
    pub signers: Option<&'a str>,
    /// "cpu" (as "" is), "cuda", "cuda:1".
    pub device: &'a str,
    /// Sizes between two that are proven alike run what these run.
    pub near: bool,
    /// An operation that the table does not have is measured for about so long when it is first asked for. Zero: never.
    pub tune: Duration,
    /// The cache that keeps what was tuned. None: the usual one.
    pub cache_dir: Option<&'a Path>,
    /// The most that a launch may use. 0: 32 MiB, of convolutions and recurrent layers 512 MiB.
    pub workspace_bytes: u64,
    /// Folders in which libraries are looked for first, with colons between.
    pub library_path: Option<&'a Path>,
    /// What hears of defaults in the place of choices.
    pub say: Option<Say>,
}

unsafe extern "C" fn hear(context: *mut c_void, line: *const c_char) {
    // SAFETY: the context is the runner's, which lives; the line is a text.
    let (say, text) = unsafe { (&*(context as *const Say), text_at(line)) };
    if let Err(payload) = panic::catch_unwind(panic::AssertUnwindSafe(|| say(&text))) {
        std::mem::forget(payload); // nothing unwinds through C, and dropping it might
    }
}

/// Launches since a runner was opened. All but `listed` ran the library's default in the place of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ran what the table says, which may be the default.
    pub listed: u64,
    /// The table does not have the operation, or there is no table.
    pub unlisted: u64,
    /// The table's choice could not be made here.
    pub refused: u64,
    /// The table's choice wants a packed weight, and got a plain one.
    pub unpacked: u64,
}

/// What a product has behind it. What is not said is not there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemm<'a> {
    /// Which side is constant.
    pub weight: Option<Side>,
    /// fp32 may be rounded to tf32.
    pub tf32: bool,
    /// "relu", "gelu", "gelu_tanh", "silu", …
    pub activation: Option<&'a CStr>,
    /// `[N]`, `[M,1]`, `[1]` or `[M,N]`.
    pub bias: Option<View<'a>>,
    /// As c.
    pub residual: Option<View<'a>>,
    /// Of a weight b of 4 or 8 bits beside floats: `[N, blocks along K]`.
    pub scales: Option<View<'a>>,
    /// As scales, of the type of b: what is taken off its numbers.
    pub zeros: Option<View<'a>>,
    /// Of the constant side, or of its zeros; that one's data is not read then.
    pub packed: Option<&'a Packed<'a>>,
}

/// A side of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The left one.
    A,
    /// The right one.
    B,
}

/// How attention is to be computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention<'a> {
    /// Query i sees the keys up to i + past.
    pub causal: bool,
    /// Of a causal one. None: as many as there are more keys than queries.
    pub past: Option<i64>,
    /// Of a causal one: at most so many keys, the last ones. 0: all.
    pub window: i64,
    /// None: 1 / sqrt(size of a head).
    pub scale: Option<f64>,
    /// None: no softcap.
    pub softcap: Option<f64>,
    /// Added; `[sequences, heads, queries, keys]`, each of which may be 1.
    pub mask: Option<View<'a>>,
    /// int32 `[sequences]`: the place of the last key that counts.
    pub lengths: Option<View<'a>>,
}

/// How a convolution goes. What is 0 is as usual.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conv<'a> {
    /// A transposed one.
    pub transposed: bool,
    /// 0: one.
    pub group: i64,
    /// Of each dimension of space. 0: 1.
    pub stride: [i64; 3],
    /// Likewise.
    pub dilation: [i64; 3],
    /// Before each dimension of space, then behind each.
    pub pads: [i64; 6],
    /// As of a product.
    pub activation: Option<&'a CStr>,
    /// `[outputs]`.
    pub bias: Option<View<'a>>,
    /// As the output.
    pub residual: Option<View<'a>>,
    /// The weight is a constant.
    pub constant: bool,
    /// fp32 may be rounded to tf32.
    pub tf32: bool,
}

/// What a norm has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Norm<'a> {
    /// None: 1e-5, of "l2" none.
    pub epsilon: Option<f64>,
    /// `[columns]`.
    pub scale: Option<View<'a>>,
    /// `[columns]`.
    pub bias: Option<View<'a>>,
    /// As x, added before.
    pub residual: Option<View<'a>>,
}

/// What runs an operation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The table has it, and its choice runs; else the default.
    pub listed: bool,
    /// "onednn"
    pub implementation: String,
    /// "weight=packed"
    pub variant: String,
    /// Why it is not the table's choice; "" where it is.
    pub note: String,
    /// Its weight is rearranged once.
    pub packs: bool,
    /// Of a launch.
    pub workspace_bytes: u64,
    /// Of the table, in microseconds. None: it does not have it.
    pub expected_us: Option<f64>,
    /// Likewise, of the default.
    pub default_us: Option<f64>,
}

/// A device with a table.
pub struct Runner {
    run: *mut ffi::Run,
    host: bool,
    _say: Option<Box<Say>>, // the library has its address
}

// SAFETY: all functions of the library but the one that closes may be called from any thread at any time.
unsafe impl Send for Runner {}
unsafe impl Sync for Runner {}

impl Drop for Runner {
    fn drop(&mut self) {
        // SAFETY: nothing borrows it any more.
        unsafe { ffi::scout_run_close(self.run) }
    }
}

fn at(view: &Option<View<'_>>) -> *const ffi::Tensor {
    view.as_ref().map_or(ptr::null(), |v| &v.tensor)
}

impl Runner {
    /// Opens a device, and the table for it. A table that cannot be used is no error: `table_note` says why.
    pub fn open(options: Options<'_>) -> Result<Runner, Error> {
        let path = |what, path: Option<&Path>| path.map(|p| c_text(what, p.as_os_str().as_bytes())).transpose();
        let (table, cache) = (path("the table's path", options.table)?, path("the cache's path", options.cache_dir)?);
        let libraries = path("the path of libraries", options.library_path)?;
        let signers = options.signers.map(|s| c_text("signers", s)).transpose()?;
        let device = c_text("the device", if options.device.is_empty() { "cpu" } else { options.device })?;
        let say = options.say.map(Box::new);
        let given = ffi::Options {
            size: std::mem::size_of::<ffi::Options>() as u32,
            near_shapes: options.near.into(),
            table: pointer(&table),
            device: device.as_ptr(),
            library_path: pointer(&libraries),
            workspace_bytes: options.workspace_bytes,
            say: say.as_ref().map(|_| hear as unsafe extern "C" fn(*mut c_void, *const c_char)),
            context: say.as_ref().map_or(ptr::null_mut(), |s| &**s as *const Say as *mut c_void),
            tune_ms: u32::try_from(options.tune.as_millis()).unwrap_or(u32::MAX),
            reserved: 0,
            cache_dir: pointer(&cache),
            signers: pointer(&signers),
        };
        let (mut run, mut error) = (ptr::null_mut(), new_error());
        // SAFETY: all that `given` names lives until the call returns; what the library keeps, `say`, goes into the runner.
        checked(unsafe { ffi::scout_run_open(&mut run, &given, &mut error) }, &error)?;
        Ok(Runner { run, host: device.as_bytes().starts_with(b"cpu"), _say: say })
    }

    /// The name of the device ("NVIDIA H200").
    pub fn device(&self) -> String {
        // SAFETY: a text of the runner.
        unsafe { text_at(ffi::scout_run_device(self.run)) }
    }

    /// Whether a table is used.
    pub fn has_table(&self) -> bool {
        // SAFETY: the runner is open.
        unsafe { ffi::scout_run_has_table(self.run) != 0 }
    }

    /// Why none is, or what is to be said of the one that is.
    pub fn table_note(&self) -> String {
        // SAFETY: a text of the runner.
        unsafe { text_at(ffi::scout_run_table_note(self.run)) }
    }

    /// Data begins at multiples of so many bytes; on a CPU, where it is 1, at multiples of an element's size.
    pub fn alignment(&self) -> u64 {
        // SAFETY: the runner is open.
        unsafe { ffi::scout_run_alignment(self.run) }
    }

    /// Launches since it was opened.
    pub fn counts(&self) -> Counts {
        let mut n = ffi::Counts::default();
        // SAFETY: the runner is open.
        unsafe { ffi::scout_run_count(self.run, &mut n) };
        Counts { listed: n.listed, unlisted: n.unlisted, refused: n.refused, unpacked: n.unpacked }
    }

    /// What runs an operation, by the canonical text that reports and tables have.
    pub fn choice(&self, key: &str) -> Result<Choice, Error> {
        let key = c_text("the key", key)?;
        let (mut op, mut error) = (ptr::null(), new_error());
        // SAFETY: as told in the header; texts are borrowed from the operation, which stays.
        unsafe {
            checked(ffi::scout_run_find(self.run, key.as_ptr(), &mut op, &mut error), &error)?;
            let mut info: ffi::OpInfo = std::mem::zeroed();
            info.size = std::mem::size_of::<ffi::OpInfo>() as u32;
            ffi::scout_run_op_describe(op, &mut info);
            let known = |us: f64| if us > 0.0 { Some(us) } else { None };
            Ok(Choice {
                listed: info.listed != 0,
                implementation: text_at(info.implementation),
                variant: text_at(info.variant),
                note: text_at(info.note),
                packs: info.packs >= 0,
                workspace_bytes: info.workspace_bytes,
                expected_us: known(info.expected_us),
                default_us: known(info.default_us),
            })
        }
    }

    /// Memory of the host is for the CPU, and memory of a device for that device.
    fn lie_here(&self, read: &[Option<View<'_>>], written: &ViewMut<'_>) -> Result<(), Error> {
        if written.host == self.host && read.iter().flatten().all(|v| v.host == self.host) {
            return Ok(());
        }
        let where_to = if self.host { "the host" } else { "the device" };
        Err(Error::Invalid(format!("memory of {where_to} was expected, for {}", self.device())))
    }

    fn gemm_more(&self, with: &Gemm<'_>) -> ffi::GemmMore {
        ffi::GemmMore {
            size: std::mem::size_of::<ffi::GemmMore>() as u32,
            weight: with.weight.map_or(0, |side| if side == Side::A { 'a' } else { 'b' } as i32),
            tf32: with.tf32.into(),
            reserved: 0,
            activation: with.activation.map_or(ptr::null(), CStr::as_ptr),
            bias: at(&with.bias),
            residual: at(&with.residual),
            scales: at(&with.scales),
            packed: with.packed.map_or(ptr::null(), |p| p.weight as *const _),
            zeros: at(&with.zeros),
        }
    }

    /// c = activation(a b + bias + residual), a of `[M,K]` and b of `[K,N]`, in any order; with batches before these.
    pub fn gemm(
        &self,
        a: View<'_>,
        b: View<'_>,
        c: &mut ViewMut<'_>,
        with: &Gemm<'_>,
        on: Stream,
    ) -> Result<(), Error> {
        self.lie_here(&[Some(a), Some(b), with.bias, with.residual, with.scales, with.zeros], c)?;
        let (more, mut error) = (self.gemm_more(with), new_error());
        // SAFETY: views lie inside memory that is borrowed for this call, and c is borrowed by nothing else. The library compares them.
        let status = unsafe { ffi::scout_run_gemm(self.run, &a.tensor, &b.tensor, &c.tensor, &more, on.0, &mut error) };
        checked(status, &error)
    }

    /// Packs the constant side of a product for the plan that runs it, which is told as for its launch. None: what runs here
    /// takes the weight as it is.
    pub fn pack(
        &self,
        a: View<'_>,
        b: View<'_>,
        c: &mut ViewMut<'_>,
        with: &Gemm<'_>,
    ) -> Result<Option<Packed<'_>>, Error> {
        self.lie_here(&[Some(a), Some(b), with.bias, with.residual, with.scales, with.zeros], c)?;
        let (more, mut error, mut weight) = (self.gemm_more(with), new_error(), ptr::null_mut());
        // SAFETY: as for a launch.
        let status = unsafe {
            ffi::scout_pack_weight_gemm(self.run, &a.tensor, &b.tensor, &c.tensor, &more, &mut weight, &mut error)
        };
        match checked(status, &error) {
            Ok(()) => Ok(Some(Packed { weight, of: PhantomData })),
            Err(Error::Unsupported(_)) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// out = softmax(scale q k^T + mask) v, all of `[sequences, heads, rows, size of a head]`.
    pub fn attention(
        &self,
        q: View<'_>,
        k: View<'_>,
        v: View<'_>,
        out: &mut ViewMut<'_>,
        with: &Attention<'_>,
        on: Stream,
    ) -> Result<(), Error> {
        self.lie_here(&[Some(q), Some(k), Some(v), with.mask, with.lengths], out)?;
        let mut error = new_error();
        let more = ffi::AttentionMore {
            size: std::mem::size_of::<ffi::AttentionMore>() as u32,
            causal: with.causal.into(),
            past: with.past.unwrap_or(0),
            window: with.window,
            scale: with.scale.unwrap_or(0.0),
            softcap: with.softcap.unwrap_or(0.0),
            has_past: with.past.is_some().into(),
            reserved: 0,
            mask: at(&with.mask),
            lengths: at(&with.lengths),
        };
        // SAFETY: as of a product.
        let status = unsafe {
            ffi::scout_run_attention(self.run, &q.tensor, &k.tensor, &v.tensor, &out.tensor, &more, on.0, &mut error)
        };
        checked(status, &error)
    }

    /// A convolution: input and output are `[N, C, space]`, the weight `[outputs, inputs of a group, kernel]`.
    pub fn conv(
        &self,
        input: View<'_>,
        weight: View<'_>,
        output: &mut ViewMut<'_>,
        with: &Conv<'_>,
        on: Stream,
    ) -> Result<(), Error> {
        self.lie_here(&[Some(input), Some(weight), with.bias, with.residual], output)?;
        let mut error = new_error();
        let more = ffi::ConvMore {
            size: std::mem::size_of::<ffi::ConvMore>() as u32,
            transposed: with.transposed.into(),
            group: with.group,
            stride: with.stride,
            dilation: with.dilation,
            pads: with.pads,
            activation: with.activation.map_or(ptr::null(), CStr::as_ptr),
            bias: at(&with.bias),
            residual: at(&with.residual),
            packed: ptr::null(),
            constant: with.constant.into(),
            tf32: with.tf32.into(),
        };
        // SAFETY: as of a product.
        let status = unsafe {
            ffi::scout_run_conv(self.run, &input.tensor, &weight.tensor, &output.tensor, &more, on.0, &mut error)
        };
        checked(status, &error)
    }

    /// y = the norm of x along its last dimension; "layer", "rms" or "l2"; dense.
    pub fn norm(&self, what: &str, x: View<'_>, y: &mut ViewMut<'_>, with: &Norm<'_>, on: Stream) -> Result<(), Error> {
        self.lie_here(&[Some(x), with.scale, with.bias, with.residual], y)?;
        let (what, mut error) = (c_text("what", what)?, new_error());
        let more = ffi::NormMore {
            size: std::mem::size_of::<ffi::NormMore>() as u32,
            reserved: 0,
            epsilon: with.epsilon.unwrap_or(0.0),
            scale: at(&with.scale),
            bias: at(&with.bias),
            residual: at(&with.residual),
            sum: ptr::null(),
        };
        // SAFETY: as of a product.
        let status =
            unsafe { ffi::scout_run_norm(self.run, what.as_ptr(), &x.tensor, &y.tensor, &more, on.0, &mut error) };
        checked(status, &error)
    }

    /// y = softmax of x along an axis (-1: the last one), or its logarithm; dense.
    pub fn softmax(
        &self,
        x: View<'_>,
        y: &mut ViewMut<'_>,
        axis: i32,
        logarithm: bool,
        on: Stream,
    ) -> Result<(), Error> {
        self.lie_here(&[Some(x)], y)?;
        let mut error = new_error();
        // SAFETY: as of a product.
        let status =
            unsafe { ffi::scout_run_softmax(self.run, &x.tensor, &y.tensor, axis, logarithm.into(), on.0, &mut error) };
        checked(status, &error)
    }

    /// y = what(inputs), inputs broadcast as in ONNX, y dense: "add", "mul", "relu", "gelu", "swiglu", …
    pub fn elementwise(&self, what: &str, inputs: &[View<'_>], y: &mut ViewMut<'_>, on: Stream) -> Result<(), Error> {
        for &input in inputs {
            self.lie_here(&[Some(input)], y)?;
        }
        let (what, mut error) = (c_text("what", what)?, new_error());
        let all: Vec<*const ffi::Tensor> = inputs.iter().map(|v| &v.tensor as *const _).collect();
        let count = i32::try_from(all.len()).map_err(|_| Error::Invalid("fewer inputs were expected".to_string()))?;
        // SAFETY: as of a product.
        let status = unsafe {
            ffi::scout_run_elementwise(self.run, what.as_ptr(), all.as_ptr(), count, &y.tensor, on.0, &mut error)
        };
        checked(status, &error)
    }
}

/// A constant weight, rearranged for what runs it: of one product, with as many rows as it was packed for. On CUDA it is
/// dropped when the device has done all launches with it.
#[derive(Debug)]
pub struct Packed<'a> {
    weight: *mut ffi::Weight,
    of: PhantomData<&'a Runner>,
}

// SAFETY: launches from any thread read it.
unsafe impl Send for Packed<'_> {}
unsafe impl Sync for Packed<'_> {}

impl Packed<'_> {
    /// What it takes.
    pub fn bytes(&self) -> u64 {
        // SAFETY: it is there.
        unsafe { ffi::scout_run_weight_bytes(self.weight) }
    }
}

impl Drop for Packed<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing borrows it any more.
        unsafe { ffi::scout_run_weight_free(self.weight) }
    }
}
