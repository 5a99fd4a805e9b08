// Package record defines the records of a run, one JSON line a unit in
// OUT/results.jsonl, and how they are written so that nothing is lost.
package record

// Record is the result of one unit. Fields that a study does not use are
// absent. Everything but Cost is part of the result: two runs of one plan
// agree on it.
type Record struct {
	// ID is the hash of everything that determines the result.
	ID    string `json:"id"`
	Study string `json:"study"`
	Net   string `json:"net"`
	// Image is the image id: the path relative to the data's root, split dropped.
	Image string `json:"image,omitempty"`
	// Class is the label, nil where the data has none.
	Class *int `json:"class,omitempty"`
	// Target is the tracked class.
	Target int            `json:"target"`
	Method string         `json:"method,omitempty"`
	Params map[string]any `json:"params,omitempty"`
	Seed   uint64         `json:"seed"`

	// Prediction is what the net says of the unchanged image.
	Prediction *Prediction `json:"prediction,omitempty"`

	*Trace
	*TrainingEpoch

	// Map describes the unit's map of attribution, which is in a file of its own.
	Map *Map `json:"map,omitempty"`
	// Score is how good the unit's map is.
	Score *Score `json:"score,omitempty"`
	// Road is what the net says of the image as pixels are removed and imputed.
	Road *Road `json:"road,omitempty"`

	// Error says why the unit failed; then there are no values.
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Cost     Cost     `json:"cost"`
}

// Prediction is the net's answer to an unchanged image. Classes and
// Probabilities are the best five, most probable first.
type Prediction struct {
	Classes       []int     `json:"classes"`
	Probabilities []float64 `json:"probabilities"`
}

// Trace is the result of a deletion search (package trace).
type Trace struct {
	Objective string  `json:"objective"`
	ScoreOn   string  `json:"scoreOn"`
	Solver    string  `json:"solver"`
	Value     float64 `json:"value"`
	Sums      Sums    `json:"sums"`
	// Features is t; for images EdgePatches = sqrt(t).
	Features    int `json:"features"`
	EdgePatches int `json:"edgePatches,omitempty"`
	// Trajectory holds feature indices (row-major patches), least relevant first;
	// none where Bound.
	Trajectory []int `json:"trajectory,omitempty"`
	// Bound says that Value is an upper bound of what a trajectory can reach:
	// curves and sums are those of the best set of every size.
	Bound  bool   `json:"bound,omitempty"`
	Curves Curves `json:"curves"`
	// Accepted counts accepted proposals (annealing).
	Accepted int            `json:"accepted,omitempty"`
	History  []HistoryPoint `json:"history,omitempty"`
	// Last is the value of the last state of a search that returns its best.
	Last *float64 `json:"last,omitempty"`
	// Restarts holds the best value of each where there were several.
	Restarts []float64 `json:"restarts,omitempty"`
	// Relaxed is an estimate of what the best trajectory could reach, and no bound:
	// the sum of the best set that was seen at each size.
	Relaxed *float64 `json:"relaxed,omitempty"`
}

// Map is what is known of a map of attribution, after the reduction of its channels.
// The numbers are of its finite values, 0 where there are none.
type Map struct {
	// Shape is [C,H,W], [1,H,W] or [F].
	Shape []int   `json:"shape"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	Sum   float64 `json:"sum"`
	// Norm is Euclid's.
	Norm float64 `json:"norm"`
	// NonFinite is the fraction of values that are no numbers (NaN or infinite).
	NonFinite float64 `json:"nonFinite"`
	// Delta is the gap of completeness: the sum of the map before reduction minus the
	// change of the explained output; nil where the method has none.
	Delta *float64 `json:"delta,omitempty"`
}

// Score is what a metric says of a map.
type Score struct {
	// Value is nil where Undefined names the reason why there is none.
	Value     *float64 `json:"value"`
	Undefined string   `json:"undefined,omitempty"`
	// Also are other numbers of the same metric, by name.
	Also   map[string]float64 `json:"also,omitempty"`
	Curves []ScoreCurve       `json:"curves,omitempty"`
}

// ScoreCurve is a score's parts in order.
type ScoreCurve struct {
	Name string `json:"name"`
	// X and Labels are as long as Y, or there are none.
	X      []float64 `json:"x,omitempty"`
	Labels []string  `json:"labels,omitempty"`
	Y      []float64 `json:"y"`
}

// Road is the answers of a net to an image without its pixels (columns) that a map
// ranks first or last. All lists have an entry for each of Fractions.
type Road struct {
	// Order is "morf" (most relevant removed first), "lerf" or "random".
	Order   string `json:"order"`
	Imputer string `json:"imputer"`
	// Fractions are the parts of the pixels that are removed, ascending in 0..1;
	// Removed counts the pixels.
	Fractions []float64 `json:"fractions"`
	Removed   []int     `json:"removed"`
	// Probabilities are those of the target, PredictedProbabilities those of the class
	// that is predicted on the unchanged image.
	Probabilities          []float64 `json:"probabilities"`
	PredictedProbabilities []float64 `json:"predictedProbabilities"`
	// Predicted are the most probable classes; Correct says where they are the label,
	// nil where there is none.
	Predicted []int  `json:"predicted"`
	Correct   []bool `json:"correct,omitempty"`
	// MaskVariation is the total variation of the mask of removed pixels: the mean
	// absolute difference of vertical neighbours and that of horizontal ones, added.
	// None for columns.
	MaskVariation []float64 `json:"maskVariation,omitempty"`
	// MapVariation is that of the map, scaled to 0..1; nil without a map.
	MapVariation *float64 `json:"mapVariation,omitempty"`
	// Iterations are those of the imputer's solver; nil where it has none.
	Iterations []int `json:"iterations,omitempty"`
}

// TrainingEpoch is what an epoch of a training came to.
type TrainingEpoch struct {
	Epoch int `json:"epoch"` // from 1
	// Imputer is what is trained where it is no net ("gain"). Then Loss is the
	// generator's, ValidationLoss the mean squared error of imputed images over all of
	// their pixels (in 0..1), and accuracies are the fraction of pixels that the
	// discriminator judged right.
	Imputer string `json:"imputer,omitempty"`
	// Rate is the learning rate of the epoch's first step.
	Rate float64 `json:"rate"`
	// Loss is the mean over the examples as they were seen: augmented, by
	// the parameters of their time, with label smoothing. Accuracy is the
	// fraction that was right.
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"`
	// ValidationLoss is the mean cross-entropy on the validation part, without
	// label smoothing; nil where it was not measured.
	ValidationLoss     *float64 `json:"validationLoss,omitempty"`
	ValidationAccuracy *float64 `json:"validationAccuracy,omitempty"`
	// MeanImageError is what ValidationLoss would be, of imputers, if every removed pixel
	// became that of the mean of the training images: in expectation over the masks.
	MeanImageError *float64 `json:"meanImageError,omitempty"`
}

// LeMo holds one number for the LeRF and one for the MoRF curve.
type LeMo struct {
	Le float64 `json:"le"`
	Mo float64 `json:"mo"`
}

// Sums holds the plain sums over the t+1 points of each curve.
type Sums struct {
	Prob  LeMo `json:"prob"`
	Logit LeMo `json:"logit"`
}

// Curve holds a LeRF and a MoRF curve, t+1 points each.
type Curve struct {
	Le []float64 `json:"le"`
	Mo []float64 `json:"mo"`
}

// Curves holds the curves by probability and by logit.
type Curves struct {
	Prob  Curve `json:"prob"`
	Logit Curve `json:"logit"`
}

// HistoryPoint is the state of a search after an iteration.
type HistoryPoint struct {
	Iteration int  `json:"iteration"`
	Accepted  bool `json:"accepted"`
	// Evaluations is nominal, as in Cost.
	Evaluations int64   `json:"evaluations,omitempty"`
	Current     float64 `json:"current"`
	Best        float64 `json:"best"`
}

// Cost is what a unit took. It is outside every identity and comparison.
type Cost struct {
	Seconds float64 `json:"seconds"`
	// Evaluations is nominal: states that the plain loop with savings 1 and 2
	// of trace would ask for.
	Evaluations int64 `json:"evaluations,omitempty"`
	// Forwards is rows with a state really run, padding not counted.
	Forwards int64 `json:"forwards,omitempty"`
	// Backwards is rows whose gradient was taken.
	Backwards int64 `json:"backwards,omitempty"`
	// StartForwards is the part of Forwards spent on the search's start.
	StartForwards int64 `json:"startForwards,omitempty"`
	// Changed is the states that proposals changed, as often as they did.
	Changed int64 `json:"changed,omitempty"`
	// Discarded is the part of Forwards that was speculation and came to nothing.
	Discarded int64 `json:"discarded,omitempty"`
	// MapSeconds, ImputeSeconds and ForwardSeconds are parts of Seconds (study road).
	MapSeconds     float64 `json:"mapSeconds,omitempty"`
	ImputeSeconds  float64 `json:"imputeSeconds,omitempty"`
	ForwardSeconds float64 `json:"forwardSeconds,omitempty"`
}
