// Package weights reads state dicts (.pth legacy and zip, safetensors), matches
// them to nets and fetches published files.
package weights
