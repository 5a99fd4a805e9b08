// Package weights reads files of network weights, matches them to the
// parameters of a net, and fetches published files.
//
// The one idea: a weights file is data from a stranger. [Open] recognises it by
// content, never by its name, and takes nothing out of it but tensors:
//
//   - torch .pth/.pt/.th, both the zip layout (PyTorch 1.6 and later) and the
//     older sequence of pickles. The pickle is interpreted by gopickle with a
//     short list of admitted names; any other name is refused and reported, so
//     that no code of the file is ever run. Storages are read straight from the
//     file into the tensors that need them: one copy of the data in memory.
//   - safetensors.
//
// Whatever a file claims, no more is allocated than a small multiple of its
// size, and a damaged file gives an error, not a panic. All errors that a user
// can mend satisfy errors.Is(err, usage.Err).
//
// [Match] compares a state dict with what a net asks for and is strict about
// names and shapes but for a few known spellings. [Fetch] gets the files listed
// by [Published], resumably and checked against the hash in their names, and
// [Resolve] turns the argument of --weights into a path.
package weights
