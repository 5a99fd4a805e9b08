package weights

// Tensor is one entry of a state dict: contiguous, row-major, little-endian.
type Tensor struct {
	// DType is "f32", "f64", "f16", "bf16", "u8", "i8", "i16", "i32", "i64" or "bool".
	DType string
	Shape []int64
	Data  []byte
}

// StateDict is the content of a weights file.
type StateDict struct {
	// Names in the file's order, prefixes and wrappers taken off.
	Names   []string
	Tensors map[string]Tensor
	// Format is "pth-legacy", "pth-zip" or "safetensors".
	Format string
	// Hash is the SHA-256 of the file's bytes in hex.
	Hash string
}

// Parameter is what a net asks for (tx_net_describe).
type Parameter struct {
	Name     string  `json:"name"`
	Shape    []int64 `json:"shape"`
	Buffer   bool    `json:"buffer"`
	Optional bool    `json:"optional"`
}
