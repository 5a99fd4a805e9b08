// Package dataset reads the inputs of a study: image folders (directories and
// archives, read as they are), arrays and tables; it gives every item the id by
// which records, maps and random numbers know it.
//
// The one idea: a [Set] is a list of items, small and in a defined order, and
// the means to read each of them when it is wanted. Nothing but the list is
// kept, so a set of a million images takes no more memory than a million ids.
//
// # Ids
//
// The id of an image is its path below the root, "/"-separated, without the
// folder of the split: test/airplane/0000.jpg is airplane/0000.jpg. The id of a
// row of an array or a table is its number in six digits, from 000000. Ids are
// unique within a set.
//
// # Order
//
// Items are listed by id (bytewise), rows by number. The one exception is a
// gzipped tar whose chosen images take more than Options.MaxBytes: its items
// are listed as the archive has them, because only that order reads it once.
// No result may depend on the order; ContentHash does not.
//
// # Splits and classes
//
// A root that has train/ and test/ or val/ under it has splits: test is the
// default, else val, else everything. Folders below the split are classes,
// numbered in name order over all splits; folders named by WordNet ids become
// ImageNet's 0-999. A labels.txt ("file class" a line) beside the images, or
// Options.Labels, takes the place of folders. Without either the class is -1.
//
// # Rows of small images
//
// What small images are published in (idx, CIFAR's batches, SVHN's MATLAB
// files; rowLayouts lists them) makes sets of kind Arrays whose pixels are
// 0..255. [Set.Pixels] gives them as bytes, [Set.Values] as float32. Rows of a
// file that is not compressed are read where they lie, others are kept in
// memory as bytes.
//
// # Made-up data
//
// Paths that begin with "synthetic:" are data that is made when it is read
// ([Synthetic]): images whose object is known ([Set.Foreground]), groups
// ([Set.Group]), tables whose distribution is known ([Set.Mixture]).
package dataset
