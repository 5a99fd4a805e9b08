// Package trace turns deletion games into optimisation (Wang and Wang,
// "Benchmarking Deletion Metrics with the Principled Explanations", ICML 2024;
// "TRACE"): it searches for the order of deleting features that a deletion
// metric likes best, as the yardstick for every attribution method.
//
// A state is the set S of deleted features, and its score F(S) what the net says
// of the input with the features of S replaced by a reference: a function of the
// set alone. A trajectory orders the t features, least relevant first. Its LeRF
// curve is F(first k), its MoRF curve F(last k), k = 0..t; the objectives le, mo
// and le-mo combine their sums and are maximised.
//
// Decisions, where the paper is silent or misprinted: Eq. 3 prints a minimum for
// TRACE-Le, all objectives are maximised; Algorithm 1's auc is identically 0 as
// printed and its sum leaves out k = 0, a constant; "[k:]" stands there both for
// "the last k" and for "from k on"; two uniform positions are two distinct ones;
// among equally relevant features the smaller index is the less relevant.
//
// A search scores only the states that a proposal changed and remembers what it
// scored. That, and sharing batches between images ([Merger]), leaves every
// decision as in the plain loop that scores all states of one image at a time:
// scores are summed in fixed point, random numbers are addressed by (seed,
// purpose, image, iteration), and one comparator decides.
package trace
