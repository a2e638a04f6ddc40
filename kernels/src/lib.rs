//! Ready kernels: each file holds a kernel, the function that launches it on buffers, what it
//! computes in plain Rust, and the settings that a tuner chooses from.
//!
//! ```
//! use exactile::{Buffer, Device, assert_bits_equal};
//! use exactile_kernels::{Setting, softmax};
//!
//! let device = Device::cpu();
//! let x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 1.0, 1.0, 1.0])?;
//! let mut out = Buffer::<f32>::zeros(&device, 6)?;
//! softmax(&x, &mut out, [2, 3], &Setting::default())?;
//! let golden = out.to_vec()?;
//! // A setting decides how fast a kernel is, never its bits.
//! for setting in softmax::space([2, 3]) {
//!     softmax(&x, &mut out, [2, 3], &setting)?;
//!     assert_bits_equal(&out.to_vec()?, &golden);
//! }
//! # Ok::<(), exactile::Error>(())
//! ```

#![warn(missing_docs)]

pub mod activation;
pub mod adamw;
pub mod addmm;
pub mod attention;
pub mod attention_backward;
mod attention_launch;
pub mod attention_merge;
pub mod bmm;
pub mod conv2d;
pub mod cross_entropy;
pub mod cumsum;
pub mod dropout;
pub mod embedding;
pub mod gather;
pub mod group_norm;
pub mod grouped_matmul;
mod heads;
pub mod histogram;
mod key_tiles;
pub mod layer_norm;
pub mod layer_norm_backward;
pub mod linear;
pub mod log_softmax;
pub mod matmul;
pub mod mean;
pub mod paged;
pub mod persistent_matmul;
pub mod places;
mod product;
pub mod quantise;
pub mod rms_norm;
pub mod rope;
pub mod routing;
pub mod sampling;
pub mod scaled_matmul;
pub mod segment_sum;
pub mod selective_scan;
pub mod setting;
pub mod softmax;
pub mod sort;
mod space;
pub mod spmm;
pub mod sum;
pub mod tensor_matmul;
pub mod topk;
pub mod transpose;
pub mod tree;
pub mod vector_add;

pub use activation::{
    launch as activation, launch_swiglu as swiglu, launch_swiglu_backward as swiglu_backward,
};
pub use adamw::launch as adamw;
pub use addmm::launch as addmm;
pub use attention::launch as attention;
pub use attention_backward::launch as attention_backward;
pub use bmm::launch as bmm;
pub use conv2d::launch as conv2d;
pub use cross_entropy::launch as cross_entropy;
pub use cumsum::launch as cumsum;
pub use dropout::launch as dropout;
pub use embedding::launch as embedding;
pub use gather::launch as gather;
pub use group_norm::{launch as group_norm, moments as batch_moments, normalise as batch_norm};
pub use grouped_matmul::launch as grouped_matmul;
pub use histogram::launch as histogram;
pub use layer_norm::launch as layer_norm;
pub use layer_norm_backward::launch as layer_norm_backward;
pub use linear::launch as linear;
pub use log_softmax::launch as log_softmax;
pub use matmul::launch as matmul;
pub use mean::launch as mean;
pub use paged::launch as paged_append;
pub use persistent_matmul::launch as persistent_matmul;
pub use quantise::{launch as quantise, restore as dequantise};
pub use rms_norm::launch as add_rms_norm;
pub use rope::{launch as rope, launch_by_table as rope_by_table};
pub use routing::launch as routing;
pub use sampling::launch as sampling;
pub use scaled_matmul::{
    launch as scaled_matmul, launch_blocks as block_scaled_matmul, launch_float8 as float8_matmul,
    launch_rows as rows_matmul,
};
pub use segment_sum::{embedding_backward, launch as segment_sum};
pub use selective_scan::launch as selective_scan;
pub use setting::Setting;
pub use softmax::launch as softmax;
pub use sort::launch as sort;
pub use spmm::launch as spmm;
pub use sum::{all as sum_all, columns as sum_columns, rows as sum_rows};
pub use tensor_matmul::launch as tensor_matmul;
pub use topk::{launch as topk, launch_with_indices as topk_with_indices};
pub use transpose::launch as transpose;
pub use vector_add::launch as vector_add;
