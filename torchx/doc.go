// Package torchx is the boundary to libtorchx, assay's C++ side, and the only
// package that uses cgo. It holds no algorithm: devices, tensors, nets, scenes
// and images, their lifetimes and their errors.
//
// A [Device] owns one OS thread; every call that computes runs there, in the
// order of arrival, so that methods are safe from any goroutine. Handles have
// a Close, which is idempotent; a handle that is garbage-collected is closed
// too, but Go's collector does not see tensors' memory: close them.
//
// Errors are [*Error] with a code to be asked for by errors.Is: [ErrInvalid],
// [ErrNotFound], [ErrUnsupported], [ErrOutOfMemory], [ErrInternal], [ErrClosed].
// No exported function panics on bad input.
package torchx
