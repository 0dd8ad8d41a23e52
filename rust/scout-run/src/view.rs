//! Tensors on memory of others: what they are of, how they lie, and that they stay inside it.
use crate::{ffi, Error};
use std::{fmt, marker::PhantomData, mem::size_of, os::raw::c_void};

/// Types of elements, numbered as in ONNX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum Type {
    Fp32 = 1,
    Uint8 = 2,
    Int8 = 3,
    Uint16 = 4,
    Int16 = 5,
    Int32 = 6,
    Int64 = 7,
    Bool = 9,
    Fp16 = 10,
    Fp64 = 11,
    Uint32 = 12,
    Uint64 = 13,
    Bf16 = 16,
    Fp8e4m3 = 17,
    Fp8e5m2 = 19,
    /// Two values a byte, the low one first.
    Uint4 = 21,
    /// Two values a byte, the low one first.
    Int4 = 22,
}

impl Type {
    fn bits(self) -> usize {
        match self {
            Type::Uint4 | Type::Int4 => 4,
            Type::Uint8 | Type::Int8 | Type::Bool | Type::Fp8e4m3 | Type::Fp8e5m2 => 8,
            Type::Uint16 | Type::Int16 | Type::Fp16 | Type::Bf16 => 16,
            Type::Fp32 | Type::Int32 | Type::Uint32 => 32,
            Type::Int64 | Type::Fp64 | Type::Uint64 => 64,
        }
    }
}

/// The bits of a half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The bits of a bfloat16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

/// What slices may be of.
///
/// # Safety
/// Every pattern of bits is a value, and `TYPE` has its size.
pub unsafe trait Element: Copy {
    /// As libscout_run calls it.
    const TYPE: Type;
}
macro_rules! elements { ($($kind:ty = $name:ident),*) => { $(unsafe impl Element for $kind { const TYPE: Type = Type::$name; })* }; }
elements!(
    f32 = Fp32,
    f64 = Fp64,
    i8 = Int8,
    u8 = Uint8,
    i16 = Int16,
    u16 = Uint16,
    i32 = Int32,
    u32 = Uint32,
    i64 = Int64,
    u64 = Uint64,
    F16 = Fp16,
    Bf16 = Bf16
);

fn dense(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; dims.len()];
    for k in (1..dims.len()).rev() {
        strides[k - 1] = strides[k].saturating_mul(dims[k]);
    }
    strides
}

/// How many elements from the first to the last one; None: no memory has so many.
fn span(dims: &[usize], strides: &[usize]) -> Option<usize> {
    let last = dims.iter().zip(strides).try_fold(0usize, |sum, (&d, &s)| sum.checked_add((d - 1).checked_mul(s)?))?;
    last.checked_add(1)
}

/// Whether no two places are one, for what is written.
fn apart(dims: &[usize], strides: &[usize]) -> bool {
    let mut order: Vec<_> = dims.iter().zip(strides).filter(|(&d, _)| d > 1).collect();
    order.sort_by_key(|(_, &s)| s);
    let mut below = 0;
    order.iter().all(|(&d, &s)| {
        let free = s > below;
        below += (d - 1) * s;
        free
    })
}

fn tensor(data: *mut c_void, kind: Type, dims: &[usize], strides: &[usize]) -> Result<ffi::Tensor, Error> {
    let wrong = |text: &str| Err(Error::Invalid(text.to_string()));
    if dims.len() > ffi::RANK {
        return wrong("a tensor has at most 8 dimensions");
    }
    if dims.len() != strides.len() {
        return wrong("as many strides as dimensions were expected");
    }
    if dims.contains(&0) {
        return wrong("dimensions of at least 1 were expected");
    }
    let mut made = ffi::Tensor { data, kind: kind as i32, rank: dims.len() as i32, dims: [0; 8], strides: [0; 8] };
    for k in 0..dims.len() {
        match (i64::try_from(dims[k]), i64::try_from(strides[k])) {
            (Ok(dim), Ok(stride)) => (made.dims[k], made.strides[k]) = (dim, stride),
            _ => return wrong("a tensor is larger than memory"),
        }
    }
    Ok(made)
}

fn bounded(len: usize, dims: &[usize], strides: &[usize]) -> Result<(), Error> {
    if dims.len() == strides.len() && !dims.contains(&0) && span(dims, strides).map_or(true, |n| n > len) {
        return Err(Error::Invalid(format!("{dims:?} with strides {strides:?} does not fit into {len} elements")));
    }
    Ok(())
}

/// A tensor that is read.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) tensor: ffi::Tensor,
    pub(crate) host: bool,
    of: PhantomData<&'a [u8]>,
}

/// A tensor that is written.
pub struct ViewMut<'a> {
    pub(crate) tensor: ffi::Tensor,
    pub(crate) host: bool,
    of: PhantomData<&'a mut [u8]>,
}

// SAFETY: they are as slices are.
unsafe impl Send for View<'_> {}
unsafe impl Sync for View<'_> {}
unsafe impl Send for ViewMut<'_> {}
unsafe impl Sync for ViewMut<'_> {}

impl<'a> View<'a> {
    /// Dense, rows last.
    pub fn of<T: Element>(slice: &'a [T], dims: &[usize]) -> Result<Self, Error> {
        View::strided(slice, dims, &dense(dims))
    }

    /// In any order; strides are in elements.
    pub fn strided<T: Element>(slice: &'a [T], dims: &[usize], strides: &[usize]) -> Result<Self, Error> {
        debug_assert_eq!(size_of::<T>() * 8, T::TYPE.bits());
        bounded(slice.len(), dims, strides)?;
        Ok(View { tensor: tensor(slice.as_ptr() as *mut c_void, T::TYPE, dims, strides)?, host: true, of: PhantomData })
    }

    /// Dense, of a type that Rust does not have.
    pub fn of_bytes(bytes: &'a [u8], kind: Type, dims: &[usize]) -> Result<Self, Error> {
        let strides = dense(dims);
        bounded(bytes.len().saturating_mul(8) / kind.bits(), dims, &strides)?;
        Ok(View { tensor: tensor(bytes.as_ptr() as *mut c_void, kind, dims, &strides)?, host: true, of: PhantomData })
    }

    /// Memory of a GPU.
    ///
    /// # Safety
    /// All of it is there, and nothing writes it, until the device has done every launch that got it. So long the runner, and
    /// the packed weights and layers that were launched with it, are not dropped.
    pub unsafe fn device(data: *const c_void, kind: Type, dims: &[usize], strides: &[usize]) -> Result<Self, Error> {
        Ok(View { tensor: tensor(data as *mut c_void, kind, dims, strides)?, host: false, of: PhantomData })
    }

    /// With its last two dimensions in the other order: a weight `[N,K]` as `[K,N]`.
    pub fn transposed(mut self) -> Self {
        let rank = self.tensor.rank as usize;
        if rank > 1 {
            self.tensor.dims.swap(rank - 1, rank - 2);
            self.tensor.strides.swap(rank - 1, rank - 2);
        }
        self
    }

    /// Its sizes.
    pub fn dims(&self) -> Vec<usize> {
        sizes(&self.tensor)
    }
}

impl<'a> ViewMut<'a> {
    /// Dense, rows last.
    pub fn of<T: Element>(slice: &'a mut [T], dims: &[usize]) -> Result<Self, Error> {
        ViewMut::strided(slice, dims, &dense(dims))
    }

    /// In any order in which no two elements lie in one place.
    pub fn strided<T: Element>(slice: &'a mut [T], dims: &[usize], strides: &[usize]) -> Result<Self, Error> {
        bounded(slice.len(), dims, strides)?;
        let made = tensor(slice.as_mut_ptr() as *mut c_void, T::TYPE, dims, strides)?;
        if !apart(dims, strides) {
            return Err(Error::Invalid(format!("{dims:?} with strides {strides:?} writes one place twice")));
        }
        Ok(ViewMut { tensor: made, host: true, of: PhantomData })
    }

    /// Memory of a GPU.
    ///
    /// # Safety
    /// All of it is there, and nothing else reads or writes it, until the device has done every launch that got it. So long
    /// the runner, and the packed weights and layers that were launched with it, are not dropped.
    pub unsafe fn device(data: *mut c_void, kind: Type, dims: &[usize], strides: &[usize]) -> Result<Self, Error> {
        Ok(ViewMut { tensor: tensor(data, kind, dims, strides)?, host: false, of: PhantomData })
    }

    /// Its sizes.
    pub fn dims(&self) -> Vec<usize> {
        sizes(&self.tensor)
    }
}

fn sizes(tensor: &ffi::Tensor) -> Vec<usize> {
    tensor.dims[..tensor.rank as usize].iter().map(|&d| d as usize).collect()
}

fn show(f: &mut fmt::Formatter<'_>, tensor: &ffi::Tensor) -> fmt::Result {
    write!(f, "type {} of {:?}", tensor.kind, sizes(tensor))
}
impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, &self.tensor)
    }
}
impl fmt::Debug for ViewMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, &self.tensor)
    }
}
