//go:build cgo

package main

import "github.com/assay-xai/assay/internal/device"

// openDevice opens libtorch's devices.
var openDevice = device.Open
