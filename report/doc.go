// Package report makes what people look at from what a run left on disk: one
// self-contained HTML page, plots as SVG and PNG, and tables for terminals. It
// reads OUT/results.jsonl, plan.yaml, env.json, summary.csv and images/, never
// a network or an image file of the data; running it again on the same folder
// gives the same bytes.
//
// A deletion study (package trace) is shown image by image: the photograph, the
// heat map psi = (rank/t)^alpha of the trajectory with ranks 1..t from least to
// most relevant, and the LeRF and MoRF curves with the area between them. An
// eval study shows accuracies and mistakes. Any other study gets its summary.
package report
