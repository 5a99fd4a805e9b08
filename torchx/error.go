package torchx

import "fmt"

// Code says what kind of error it is; the values are those of torchx.h.
type Code int

// The codes of torchx.h, and one for handles that were closed.
const (
	CodeInvalid     Code = 1 // the caller's argument or input data is wrong
	CodeNotFound    Code = 2 // no such net, layer, device or option
	CodeUnsupported Code = 3 // not possible for this net or build
	CodeOutOfMemory Code = 4 // on host or device: a smaller batch may do
	CodeInternal    Code = 5 // a defect of assay or libtorch
	CodeClosed      Code = 6 // the handle was closed
)

// Error is what every call of this package returns on failure.
type Error struct {
	Code Code
	Op   string // the operation, for example "net-forward"
	Msg  string
}

// Error returns "operation: message".
func (e *Error) Error() string { return e.Op + ": " + e.Msg }

// Is reports whether target is the sentinel of e's code.
func (e *Error) Is(target error) bool {
	s, ok := target.(*Error)
	return ok && s.Op == "" && s.Code == e.Code
}

// Sentinels for errors.Is.
var (
	ErrInvalid     error = &Error{Code: CodeInvalid, Msg: "invalid"}
	ErrNotFound    error = &Error{Code: CodeNotFound, Msg: "not found"}
	ErrUnsupported error = &Error{Code: CodeUnsupported, Msg: "unsupported"}
	ErrOutOfMemory error = &Error{Code: CodeOutOfMemory, Msg: "out of memory"}
	ErrInternal    error = &Error{Code: CodeInternal, Msg: "internal"}
	ErrClosed      error = &Error{Code: CodeClosed, Msg: "closed"}
)

func invalidf(op, format string, args ...any) error {
	return &Error{Code: CodeInvalid, Op: op, Msg: fmt.Sprintf(format, args...)}
}

func closedError(op, what string) error {
	return &Error{Code: CodeClosed, Op: op, Msg: what + " is closed"}
}
