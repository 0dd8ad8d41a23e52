//! runtime/scout_run.h as it stands. tests/rust/run.sh holds sizes and offsets against the header.
use std::os::raw::{c_char, c_void};

pub const RANK: usize = 8;
pub const OK: i32 = 0;
pub const INVALID: i32 = 1;
pub const UNSUPPORTED: i32 = 2;
pub const NO_DEVICE: i32 = 3;
pub const NO_MEMORY: i32 = 4;
pub const FAILED: i32 = 5;

/// Structures with the members of the header, whose sizes and offsets can be told.
macro_rules! structures {
    ($($(#[$note:meta])* $name:ident { $($member:ident: $kind:ty,)* })*) => {
        $($(#[$note])* #[repr(C)] pub struct $name { $(pub $member: $kind,)* })*
        /// "name size member offset …", a line each.
        #[doc(hidden)]
        pub fn layout() -> String {
            let mut text = String::new();
            $({
                let one = std::mem::MaybeUninit::<$name>::uninit();
                let base = one.as_ptr();
                text += &format!("{} {}", stringify!($name), std::mem::size_of::<$name>());
                $(
                    // SAFETY: only the address is taken, and it lies in `one`.
                    let at = unsafe { std::ptr::addr_of!((*base).$member) } as usize - base as usize;
                    text += &format!(" {} {}", stringify!($member), at);
                )*
                text += "\n";
            })*
            text
        }
    };
}

structures! {
    Error { status: i32, text: [c_char; 508], }
    #[derive(Clone, Copy)]
    Tensor { data: *mut c_void, kind: i32, rank: i32, dims: [i64; RANK], strides: [i64; RANK], }
    Options {
        size: u32, near_shapes: u32, table: *const c_char, device: *const c_char, library_path: *const c_char,
        workspace_bytes: u64, say: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>, context: *mut c_void,
        tune_ms: u32, reserved: u32, cache_dir: *const c_char, signers: *const c_char,
    }
    #[derive(Default)]
    Counts { listed: u64, unlisted: u64, refused: u64, unpacked: u64, }
    GemmMore {
        size: u32, weight: i32, tf32: i32, reserved: i32, activation: *const c_char, bias: *const Tensor,
        residual: *const Tensor, scales: *const Tensor, packed: *const Weight, zeros: *const Tensor,
    }
    AttentionMore {
        size: u32, causal: i32, past: i64, window: i64, scale: f64, softcap: f64, has_past: i32, reserved: i32,
        mask: *const Tensor, lengths: *const Tensor,
    }
    ConvMore {
        size: u32, transposed: i32, group: i64, stride: [i64; 3], dilation: [i64; 3], pads: [i64; 6],
        activation: *const c_char, bias: *const Tensor, residual: *const Tensor, packed: *const Weight, constant: i32,
        tf32: i32,
    }
    NormMore {
        size: u32, reserved: i32, epsilon: f64, scale: *const Tensor, bias: *const Tensor, residual: *const Tensor,
        sum: *const Tensor,
    }
    OpInfo {
        size: u32, listed: i32, key: *const c_char, implementation: *const c_char, variant: *const c_char,
        note: *const c_char, tensor_count: i32, packs: i32, pack_bytes: u64, workspace_bytes: u64, expected_us: f64,
        default_us: f64,
    }
}

macro_rules! opaque { ($($name:ident)*) => { $(#[repr(C)] pub struct $name { _own: [u8; 0] })* }; }
opaque!(Run Op Weight);

extern "C" {
    pub fn scout_run_open(run: *mut *mut Run, options: *const Options, error: *mut Error) -> i32;
    pub fn scout_run_close(run: *mut Run);
    pub fn scout_run_device(run: *const Run) -> *const c_char;
    pub fn scout_run_has_table(run: *const Run) -> i32;
    pub fn scout_run_table_note(run: *const Run) -> *const c_char;
    pub fn scout_run_alignment(run: *const Run) -> u64;
    pub fn scout_run_count(run: *const Run, counts: *mut Counts);
    pub fn scout_run_gemm(
        run: *mut Run,
        a: *const Tensor,
        b: *const Tensor,
        c: *const Tensor,
        more: *const GemmMore,
        stream: *mut c_void,
        error: *mut Error,
    ) -> i32;
    pub fn scout_run_attention(
        run: *mut Run,
        q: *const Tensor,
        k: *const Tensor,
        v: *const Tensor,
        out: *const Tensor,
        more: *const AttentionMore,
        stream: *mut c_void,
        error: *mut Error,
    ) -> i32;
    pub fn scout_run_conv(
        run: *mut Run,
        input: *const Tensor,
        weight: *const Tensor,
        output: *const Tensor,
        more: *const ConvMore,
        stream: *mut c_void,
        error: *mut Error,
    ) -> i32;
    pub fn scout_run_norm(
        run: *mut Run,
        what: *const c_char,
        x: *const Tensor,
        y: *const Tensor,
        more: *const NormMore,
        stream: *mut c_void,
        error: *mut Error,
    ) -> i32;
    pub fn scout_run_softmax(
        run: *mut Run,
        x: *const Tensor,
        y: *const Tensor,
        axis: i32,
        logarithm: i32,
        stream: *mut c_void,
        error: *mut Error,
    ) -> i32;
    pub fn scout_run_elementwise(
        run: *mut Run,
        what: *const c_char,
        inputs: *const *const Tensor,
        count: i32,
        y: *const Tensor,
        stream: *mut c_void,
        error: *mut Error,
    ) -> i32;
    pub fn scout_pack_weight_gemm(
        run: *mut Run,
        a: *const Tensor,
        b: *const Tensor,
        c: *const Tensor,
        more: *const GemmMore,
        packed: *mut *mut Weight,
        error: *mut Error,
    ) -> i32;
    pub fn scout_run_weight_bytes(weight: *const Weight) -> u64;
    pub fn scout_run_weight_free(weight: *mut Weight);
    pub fn scout_run_find(run: *mut Run, key: *const c_char, op: *mut *const Op, error: *mut Error) -> i32;
    pub fn scout_run_op_describe(op: *const Op, info: *mut OpInfo);
}
