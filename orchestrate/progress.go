package orchestrate

// EventKind says what an Event is about.
type EventKind string

// Kinds of events.
const (
	// Step is the state of a stage: Done of Total.
	Step EventKind = "step"
	// Warning is a message that the user should see.
	Warning EventKind = "warning"
	// Note is a message that may be of use.
	Note EventKind = "note"
)

// StageRun is the stage in which units are run.
const StageRun = "running"

// Event is what a run tells while it goes on. Whoever shows it knows nothing
// of the run, and the run nothing of who shows it. Events come one at a time.
type Event struct {
	Kind  EventKind `json:"event"`
	Stage string    `json:"stage,omitempty"`
	// Done, Failed and Total count units or, in other stages, items. Before is
	// the part of Done that an earlier run did.
	Done   int `json:"done"`
	Failed int `json:"failed,omitempty"`
	Before int `json:"before,omitempty"`
	Total  int `json:"total"`
	// Part is what units under way have done, in units.
	Part    float64 `json:"part,omitempty"`
	Message string  `json:"message,omitempty"`
}
