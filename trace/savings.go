package trace

// Savings are the ways to score fewer states than the plain loop does. None
// changes a decision: trajectory, history and nominal evaluations are the same
// with any of them left out.
type Savings uint8

const (
	// OnlyChanged scores only the states that a proposal changed.
	OnlyChanged Savings = 1 << iota
	// Memo asks the net for a state once.
	Memo
	// EarlyRejection drops a proposal as soon as the most that its unscored
	// states can still add is too little: a probability lies in [0,1], so a LeRF
	// state can add at most 1-old, a MoRF state at most old. Logits have no bound.
	EarlyRejection
	// Speculation scores states of later proposals in rows that would be empty,
	// as if the present one were rejected.
	Speculation

	// AllSavings are all of them.
	AllSavings = OnlyChanged | Memo | EarlyRejection | Speculation
)

func (s *search) saves(one Savings) bool { return s.o.Without&one == 0 }
