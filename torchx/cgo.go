package torchx

// The libraries are found beside this module's build folder, or in ../lib of
// an installed binary; gotorch's own flags ask for libtorch, which empty linker
// scripts in lib/link satisfy (docs/build.md).

/*
#cgo CFLAGS: -I${SRCDIR}/include
#cgo LDFLAGS: -L${SRCDIR}/../build/lib -L${SRCDIR}/../build/lib/link -Wl,--disable-new-dtags -Wl,-rpath,$ORIGIN/../lib -Wl,-rpath,${SRCDIR}/../build/lib -ltorchx
#include <stdlib.h>
#include "torchx.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	_ "github.com/assay-xai/assay/internal/aaenv" // before gotorch's init
)

// start checks once that library and header belong together and starts the library.
var start = sync.OnceValue(func() error {
	if got, want := uint32(C.tx_abi()), uint32(C.TX_ABI); got != want {
		return &Error{Code: CodeUnsupported, Op: "start",
			Msg: fmt.Sprintf("libtorchx has interface %d, this program wants %d: run make build", got, want)}
	}
	return failure(C.tx_start())
})

// failure turns a status into an error and frees it.
func failure(status *C.tx_status) error {
	if status == nil {
		return nil
	}
	defer C.tx_status_free(status)
	return &Error{
		Code: Code(C.tx_status_code(status)),
		Op:   C.GoString(C.tx_status_operation(status)),
		Msg:  C.GoString(C.tx_status_message(status)),
	}
}

// take copies a string of the library and frees it.
func take(text *C.char) []byte {
	defer C.tx_string_free(text)
	return []byte(C.GoString(text))
}

// cString is C.CString with its free.
func cString(s string) (*C.char, func()) {
	c := C.CString(s)
	return c, func() { C.free(unsafe.Pointer(c)) }
}

// Catalogue returns the JSON catalogue of nets, methods and imputers.
func Catalogue() ([]byte, error) {
	if err := start(); err != nil {
		return nil, err
	}
	var text *C.char
	if err := failure(C.tx_catalogue(&text)); err != nil {
		return nil, err
	}
	return take(text), nil
}
