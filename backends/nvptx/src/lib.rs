//! Lane IR to PTX through LLVM, and the CUDA driver.
